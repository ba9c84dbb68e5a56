"""Functions and layers that Keras lacks; the emitter copies those that a model needs into its source."""
