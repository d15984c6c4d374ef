"""The schemas of the operators, which generate_schema.py has for those in C++, too."""

# Lists of tensors, by `listed` and `sizes`: _torch_operators.as_listed. Where there are
# none they are None: AOTInductor hands on an empty list as that.
FORWARD = (
    "attention_forward("
    "Tensor q, Tensor k, Tensor v, float scale, str mask, str window, str score, "
    "str score_text, Tensor[]? captures, Tensor? sinks, float dropout_p, Tensor? seed, "
    "str listed, Tensor[]? lists, SymInt[] sizes, SymInt splits, bool deterministic"
    ") -> (Tensor, Tensor)")
BACKWARD = (
    "attention_backward("
    "Tensor dout, Tensor? dlse, Tensor q, Tensor k, Tensor v, Tensor out, Tensor lse, "
    "bool[] wanted, float scale, str mask, str window, str score, str score_text, "
    "Tensor[]? captures, Tensor? sinks, float dropout_p, Tensor? seed, str listed, "
    "Tensor[]? lists, SymInt[] sizes, bool deterministic"
    ") -> Tensor[]")
