"""Fourier transforms. ONNX holds a complex tensor as real numbers with a last axis (real, imaginary)."""

from __future__ import annotations
