"""Operators that have no translation, and what to do instead."""

from porter.converters.frontends.tensorflow.table import refuse

refuse(
    "it draws random numbers: make the draw an input, or draw only in training",
    "RandomUniform", "RandomStandardNormal", "RandomUniformInt", "TruncatedNormal", "RandomShuffle", "Multinomial",
    "RandomGamma", "RandomPoissonV2", "StatelessRandomUniform", "StatelessRandomUniformV2", "StatelessRandomNormal",
    "StatelessRandomNormalV2", "StatelessRandomUniformInt", "StatelessRandomUniformIntV2", "StatelessTruncatedNormal",
    "StatelessTruncatedNormalV2", "StatelessRandomGetKeyCounter", "StatelessMultinomial",
    "ParameterizedTruncatedNormal",
)  # fmt: skip
refuse(
    "look-up tables have no counterpart: look up before the model",
    "HashTableV2", "HashTable", "LookupTableFindV2", "LookupTableFind", "LookupTableSizeV2", "MutableHashTableV2",
    "MutableDenseHashTableV2", "InitializeTableV2", "InitializeTableFromTextFileV2", "AnonymousHashTable",
)  # fmt: skip
refuse(
    "strings have no counterpart: turn them into numbers before the model",
    "StringSplit", "StringSplitV2", "StringJoin", "StringToNumber", "StringLower", "StringUpper", "RegexReplace",
    "StaticRegexReplace", "RegexFullMatch", "AsString", "Substr", "StringLength", "StringFormat", "UnicodeDecode",
    "DecodeJpeg", "DecodePng", "DecodeImage", "DecodeBase64", "EncodeBase64", "ParseExampleV2", "ParseExample",
    "ParseSingleExample", "DecodeRaw", "ReadFile", "StringToHashBucketFast", "StringNGrams", "ReduceJoin",
)  # fmt: skip
refuse(
    "ragged and sparse tensors have no counterpart: make them dense (to_tensor, tf.sparse.to_dense)",
    "RaggedTensorToTensor", "RaggedTensorFromVariant", "RaggedTensorToVariant", "RaggedGather", "RaggedRange",
    "SparseTensorDenseMatMul", "SparseToDense", "SparseReshape", "SparseReorder", "SparseSegmentSum",
    "SparseSegmentMean", "SparseFillEmptyRows", "SparseConcat", "SparseAdd", "SparseReduceSum", "SparseSoftmax",
)  # fmt: skip
refuse(
    "the control flow of TensorFlow 1 jumps between nodes: save the graph again after "
    "tf.compat.v1.enable_control_flow_v2()",
    "Switch", "Merge", "Enter", "Exit", "NextIteration", "LoopCond", "RefSwitch", "RefMerge",
)  # fmt: skip
refuse(
    "it runs Python code that the file does not hold",
    "PyFunc", "PyFuncStateless", "EagerPyFunc",
)  # fmt: skip
refuse(
    "the TensorArrays of TensorFlow 1 are no values: save the graph again with control flow v2",
    "TensorArrayV3", "TensorArrayReadV3", "TensorArrayWriteV3", "TensorArrayGatherV3", "TensorArrayScatterV3",
    "TensorArraySizeV3", "TensorArrayConcatV3", "TensorArraySplitV3",
)  # fmt: skip
refuse(
    "its result has a size that depends on the data",
    "Unique", "UniqueV2", "UniqueWithCounts", "UniqueWithCountsV2", "DynamicPartition", "Bincount", "DenseBincount",
)  # fmt: skip
refuse("crops at places that are computed have no counterpart; slices and tf.image.resize have", "CropAndResize")
refuse("greyscale morphology has no counterpart in ONNX", "Dilation2D")
