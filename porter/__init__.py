"""porter moves a model between PyTorch and TensorFlow/Keras and proves that it is still the same model."""
