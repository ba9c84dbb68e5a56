"""Every error that porter raises on purpose.

    PorterError
    ├── ReferenceError_      a reference does not name a model that can be loaded
    ├── InputError           an input, option or file does not fit
    ├── ExportError          the source framework cannot give its graph
    ├── UnsupportedError     an operator, attribute or type without a rule
    ├── WeightsError         a checkpoint does not fit the port
    ├── NotEqualError        a verified pair differs
    └── InconclusiveError    a pair could not be judged

`exit_code` is what the command line ends with. A bug is not a PorterError: it shows its traceback.
"""


class PorterError(Exception):
    """Something that the caller can mend; the message says what and how."""

    exit_code = 2


class ReferenceError_(PorterError):
    """A reference (`torch:pkg.mod:factory`, a path, …) does not lead to a model."""


class InputError(PorterError):
    """An input, option or file does not fit."""


class ExportError(PorterError):
    """The source framework cannot give its graph, or gives a wrong one."""


class UnsupportedError(PorterError):
    """The model needs an operator, attribute or type that has no rule."""


class WeightsError(PorterError):
    """A checkpoint does not fit the port."""


class NotEqualError(PorterError):
    """A verified pair differs."""

    exit_code = 1


class InconclusiveError(PorterError):
    """A pair could not be judged."""

    exit_code = 3
