//===- Tensors.cpp - element types, streams and tensors -------------------===//

#include "Bindings.h"

namespace pyaotriton {
namespace {

using aotriton::DType;

struct DTypeRow {
  const char *name;
  DType value;
};
constexpr DTypeRow kDTypes[] = {
    {"kUnknown", DType::kUnknown}, {"kFloat32", DType::kFloat32},
    {"kFloat16", DType::kFloat16}, {"kBFloat16", DType::kBFloat16},
    {"kInt8", DType::kInt8},       {"kInt16", DType::kInt16},
    {"kInt32", DType::kInt32},     {"kInt64", DType::kInt64},
    {"kUInt8", DType::kUInt8},     {"kUInt16", DType::kUInt16},
    {"kUInt32", DType::kUInt32},   {"kUInt64", DType::kUInt64},
};

/// The members that tensors of every rank have.
template <int Rank>
py::class_<aotriton::TensorView<Rank>>
defineTensor(py::module_ &module, const char *name, const char *doc) {
  using View = aotriton::TensorView<Rank>;
  // Of none of no dimensions there is one value.
  auto dimension = [](int i) {
    if (i < 0 || i >= (Rank ? Rank : 1))
      throw py::index_error("dimension " + std::to_string(i) +
                            " of a tensor that has " + std::to_string(Rank));
    return i;
  };
  py::class_<View> result(module, name, doc);
  result
      .def(
          "size",
          [dimension](const View &self, int i) {
            return self.size(dimension(i));
          },
          py::arg("i"), "Size of a dimension.")
      .def(
          "stride",
          [dimension](const View &self, int i) {
            return self.stride(dimension(i));
          },
          py::arg("i"), "Stride of a dimension, in elements.")
      .def_property_readonly("sizes", &View::sizes, "All sizes.")
      .def_property_readonly("strides", &View::strides,
                             "All strides, in elements.")
      .def_property_readonly(
          "data_ptr",
          [](const View &self) {
            return reinterpret_cast<intptr_t>(self.data_ptr());
          },
          "Address on the device, a number; 0 is a tensor without data.")
      .def_property_readonly("dtype", &View::dtype, "Element type.")
      .def(
          "__bool__", [](const View &self) { return bool(self); },
          "Whether there is data.")
      .def("__repr__", [name](const View &self) {
        return py::str("{}({:#x}, {}, {}, {})")
            .format(name, reinterpret_cast<intptr_t>(self.data_ptr()),
                    self.sizes(), self.strides(), self.dtype());
      });
  return result;
}

template <int Rank>
void defineView(py::module_ &module, const char *name, const char *doc) {
  using Numbers = std::array<uint64_t, Rank>;
  defineTensor<Rank>(module, name, doc)
      .def(py::init<intptr_t, Numbers, Numbers, DType>(), py::arg("base"),
           py::arg("sizes"), py::arg("strides"), py::arg("dtype"),
           "A tensor at an address of the device; strides in elements.");
}

} // namespace

void defineTensors(py::module_ &module) {
  py::class_<aotriton::Stream>(module, "Stream", "A stream of the device.")
      .def(py::init<>(), "The default stream of the current device.")
      .def(py::init([](intptr_t handle) {
             return aotriton::Stream(reinterpret_cast<hipStream_t>(handle));
           }),
           py::arg("handle"),
           "Of a hipStream_t as a number, what "
           "torch.cuda.current_stream().cuda_stream is. Fovea's own.");
  py::enum_<DType> types(module, "DType", "Element types.");
  for (const DTypeRow &row : kDTypes)
    types.value(row.name, row.value);
  types.export_values();
  defineView<4>(module, "T4", "A tensor of four dimensions. Does not own it.");
  defineView<2>(module, "T2", "A tensor of two dimensions. Does not own it.");
  defineView<1>(module, "T1", "A tensor of one dimension. Does not own it.");
  defineTensor<0>(module, "T0", "One value in memory. Does not own it.")
      .def(py::init<intptr_t, DType>(), py::arg("base"), py::arg("dtype"),
           "The value at an address of the device.");
}

} // namespace pyaotriton
