"""TensorFlow graphs in, structured ONNX out."""
