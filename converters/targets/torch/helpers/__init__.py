"""Functions and layers that PyTorch lacks; the emitter copies those that a model needs into its source."""
