"""Shapes, padding, blocks, splitting and joining, sizes computed of shapes."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tests.converters.frontends.tensorflow.cases import Row, floats, row

raw = tf.raw_ops
X, ALSO = floats(2, 6, 4), (floats(5, 6, 4),)
IMAGE, OTHER = floats(2, 6, 4, 8), (floats(3, 4, 6, 8),)


def _reshaping() -> list[Row]:
    return [
        row("Reshape", lambda x: tf.reshape(x, [-1, 24]), X, also=ALSO),
        row("Reshape", lambda x: tf.reshape(x, [tf.shape(x)[0], 4, -1]), X, also=ALSO),
        row("Reshape", lambda x: tf.reshape(x, [-1]), X, also=ALSO),
        row("Reshape", lambda x: tf.reshape(x, tf.stack([tf.shape(x)[0] * 6, 4])), X, also=ALSO),
        row("Reshape", lambda x: tf.reshape(x, tf.concat([tf.shape(x)[:1], [3, 2], tf.shape(x)[2:]], 0)), X, also=ALSO),
        row(
            "Reshape", lambda x: tf.reshape(x, [tf.shape(x)[0] // 2, 2, 6, 4]), floats(4, 6, 4), also=(floats(6, 6, 4),)
        ),
        row("Reshape", lambda x: tf.reshape(x, [0, 4]), floats(0, 4)),
        row("Shape", lambda x: tf.shape(x) + 1, X, also=ALSO),
        row("Shape", lambda x: tf.shape(x, out_type=tf.int64), X, also=ALSO),
        row("ShapeN", lambda x, y: tf.shape_n([x, y]), X, X[0]),
        row("Size", lambda x: tf.size(x), X, also=ALSO),
        row("Rank", lambda x: raw.Rank(input=x), X),
        row("Prod", lambda x: tf.reshape(x, [tf.reduce_prod(tf.shape(x)[:2]), 4]), X, also=ALSO),
        row("ExpandDims", lambda x: tf.expand_dims(x, 1), X, also=ALSO),
        row("ExpandDims", lambda x: tf.expand_dims(x, -1), X),
        row("Squeeze", lambda x: tf.squeeze(x, [1, -1]), floats(2, 1, 3, 1), also=(floats(4, 1, 3, 1),)),
        row("Squeeze", tf.squeeze, floats(2, 1, 3, 1)),
        row("Squeeze", tf.squeeze, floats(2, 3)),
        row("Transpose", lambda x: tf.transpose(x, [2, 0, 1]), X, also=ALSO),
        row("Transpose", tf.transpose, X),
        row("Tile", lambda x: tf.tile(x, [2, 1, 3]), X, also=ALSO),
        row("Tile", lambda x: tf.tile(x, [tf.shape(x)[0], 1, 1]), X, also=ALSO),
        row("BroadcastTo", lambda x: tf.broadcast_to(x, [tf.shape(x)[0], 6, 4]), X[:, :1], also=(ALSO[0][:, :1],)),
        row("BroadcastArgs", lambda x: tf.broadcast_dynamic_shape(tf.shape(x), [6, 4]) * 1, X, also=ALSO),
        row("Fill", lambda x: tf.fill([tf.shape(x)[0], 3], 2.5), X, also=ALSO),
        row("Fill", lambda x: tf.zeros(tf.shape(x)) + tf.cast(x, tf.float32), X, also=ALSO),
        row("Range", lambda x: tf.range(tf.shape(x)[0]), X, also=ALSO),
        row("Range", lambda x: tf.range(2.0, 5.5, 0.5) + tf.cast(x[0, 0, 0], tf.float32), X),
        row("Range", lambda x: tf.range(tf.shape(x)[1], 0, -2), X),
        row("Range", lambda n: tf.range(n), np.int32(4)),
        row("LinSpace", lambda x: tf.raw_ops.LinSpace(start=x, stop=x + 3, num=7), np.float64(1)),
        row("Const", lambda x: x + tf.constant([1.0, 2, 3, 4], tf.float64), X),
    ]


def _joining() -> list[Row]:
    return [
        row("ConcatV2", lambda x: tf.concat([x, 2 * x], 1), X, also=ALSO),
        row("ConcatV2", lambda x: tf.concat([x, 2 * x, x[:, :1]], -2), X, also=ALSO),
        row("Pack", lambda x: tf.stack([x, 2 * x], 1), X, also=ALSO),
        row("Pack", lambda x: tf.stack([x, 2 * x], -1), X),
        row("Pack", lambda x: tf.stack([x]), X),
        row("Unpack", lambda x: tf.unstack(x, axis=1), X, also=ALSO),
        row("Unpack", lambda x: tf.unstack(x, axis=-1), X[:, :, :1]),
        row("Split", lambda x: tf.split(x, 3, 1), X, also=ALSO),
        row("Split", lambda x: tf.split(x, 2, 0), X, also=(floats(4, 6, 4),)),
        row("SplitV", lambda x: tf.split(x, [1, 2, 3], 1), X, also=ALSO),
        row("SplitV", lambda x: tf.split(x, [1, -1], -1), X),
        row("ReverseV2", lambda x: tf.reverse(x, [1]), X, also=ALSO),
        row("ReverseV2", lambda x: tf.reverse(x, [0, -1]), X, also=ALSO),
        row("ReverseSequence", lambda x, n: tf.reverse_sequence(x, n, 1, 0), X, np.array([2, 5])),
        row("ReverseSequence", lambda x, n: tf.reverse_sequence(x, n, 0, 2), X, np.array([2, 1, 2, 1])),
        row("Roll", lambda x: tf.roll(x, [2, -1], [1, 2]), X, also=ALSO),
        row("Roll", lambda x: tf.roll(x, 1, 0), X, also=ALSO),
        row("DynamicStitch", lambda x: tf.dynamic_stitch([[0, 2], [1, 3]], [x, 2 * x]), X),
    ]


def _padding() -> list[Row]:
    pads = [[0, 0], [1, 2], [3, 0]]
    return [
        row("Pad", lambda x: tf.pad(x, pads), X, also=ALSO),
        row("PadV2", lambda x: tf.pad(x, pads, constant_values=2.5), X, also=ALSO),
        row("MirrorPad", lambda x: tf.pad(x, pads, "REFLECT"), X, also=ALSO),
        row("MirrorPad", lambda x: tf.pad(x, pads, "SYMMETRIC"), X, also=ALSO),
        row("Pad", lambda x: tf.pad(x, [[0, 0], [0, 8 - tf.shape(x)[1]], [0, 0]]), X, also=(floats(2, 7, 4),)),
    ]


def _blocks() -> list[Row]:
    return [
        row("DepthToSpace", lambda x: tf.nn.depth_to_space(x, 2), IMAGE, also=OTHER),
        row("SpaceToDepth", lambda x: tf.nn.space_to_depth(x, 2), IMAGE, also=OTHER),
        row("SpaceToBatchND", lambda x: tf.space_to_batch(x, [2, 2], [[0, 0], [1, 1]]), IMAGE, also=OTHER),
        row("SpaceToBatchND", lambda x: tf.space_to_batch(x, [3], [[1, 2]]), X, also=ALSO),
        row("BatchToSpaceND", lambda x: tf.batch_to_space(x, [2, 2], [[0, 1], [1, 0]]), floats(4, 3, 4, 2),
            also=(floats(8, 3, 4, 2),)),
        row("ExtractImagePatches", lambda x: tf.image.extract_patches(
            x, [1, 3, 2, 1], [1, 2, 1, 1], [1, 1, 1, 1], "VALID"), IMAGE, also=OTHER),
        row("ExtractImagePatches", lambda x: tf.image.extract_patches(
            x, [1, 3, 3, 1], [1, 2, 2, 1], [1, 1, 1, 1], "SAME"), floats(2, 7, 5, 2)),
    ]  # fmt: skip


ROWS = [*_reshaping(), *_joining(), *_padding(), *_blocks()]
