//===- TableCases.cpp - what every row of the tables promises -------------===//
//
// Run for every kernel of attention of the packages. No operation, tensor or
// feature group is named here: a new row of a table is a new case, or fails for
// want of what the suite has to know of it.
//
//===----------------------------------------------------------------------===//

#include "Call.h"

#include "Groups.h"

#include <cmath>
#include <cstring>

using namespace fovea;
using namespace fovea::cts;

namespace {

constexpr const char *kStrides[] = {".stride_batch", ".stride_head",
                                    ".stride_seq"};

/// The row of a feature group in the C interface's table; null: none.
const rt::GroupReader *readerOf(const spec::GroupSpec &group) {
  for (const rt::GroupReader &reader : rt::groupReaders())
    if (std::string(reader.name) == group.name)
      return &reader;
  return nullptr;
}

class Table : public testing::TestWithParam<KernelCase> {
protected:
  const spec::GroupSpec &base() const {
    return spec::specOf(GetParam().key.op).base;
  }

  /// Few rows, whose values tell places and tensors apart; no two sizes are the
  /// same.
  Problem problem() const {
    Problem p;
    p.kernel = GetParam();
    p.batch = 3;
    p.headsQ = 4;
    p.headsK = 2;
    p.seqlenQ = 5;
    p.seqlenK = 7;
    p.scale = 1.0f / float(p.kernel.key.headDim);
    int64_t number = 0;
    for (const spec::TensorSpec &tensor : base().tensors)
      p[tensor.name] = [first = 13 * ++number](int64_t b, int64_t h,
                                               int64_t row, int64_t d) {
        return float((first + b * 5 + h * 3 + row * 7 + d * 11) % 17) * 0.125f -
               1.0625f; // never 0
      };
    return p;
  }

  /// The same results to the last bit, where the algorithm promises that.
  void expectSame(const Results &found, const Results &expected) const {
    for (const auto &[name, values] : found) {
      const std::vector<float> &others = expected.at(name);
      ASSERT_EQ(values.size(), others.size()) << name;
      if (GetParam().algorithm->deterministic)
        EXPECT_EQ(std::memcmp(values.data(), others.data(),
                              values.size() * sizeof(float)),
                  0)
            << name << " has other bits";
      else
        for (size_t i = 0; i != values.size(); ++i)
          ASSERT_NEAR(values[i], others[i],
                      2 * roundoff(GetParam().key.dtype) *
                          std::fmax(1, std::fabs(others[i])))
              << name << " element " << i;
    }
  }
};

/// A call that is refused time and again, each time spoiled in one way.
class Refused {
public:
  explicit Refused(Problem given)
      : problem(std::move(given)), call(problem), sound(call.parameters) {
    EXPECT_FOVEA(call.select(), FOVEA_STATUS_OK);
    call.allocateWorkspace();
    sound = call.parameters;
    problem.status = FOVEA_STATUS_INVALID_ARGUMENT;
  }
  /// Nothing may have been written.
  ~Refused() { call.finish(); }

  void *params() { return call.params(); }

  /// \param words  of the message, which names what is wrong
  template <typename Spoil>
  void expect(const std::vector<std::string> &words, Spoil spoil,
              fovea_status_t status = FOVEA_STATUS_INVALID_ARGUMENT) {
    std::visit(spoil, call.parameters);
    EXPECT_FOVEA(call.enqueue(), status);
    const std::string message = fovea_last_message();
    for (const std::string &word : words)
      EXPECT_NE(message.find(word), std::string::npos)
          << "'" << word << "' is not in: " << message;
    call.parameters = sound;
  }

  /// What is asked, spoiled or not, has this status.
  template <typename Change>
  void expectSelect(fovea_status_t status, Change change) {
    std::visit(change, call.parameters);
    EXPECT_FOVEA(call.select(), status);
    call.parameters = sound;
  }

private:
  Problem problem;
  Call call;
  decltype(Call::parameters) sound;
};

} // namespace

// Also guards, what lies between rows, inputs that stay as they are, and
// tensors that may be absent.
TEST_P(Table, LayoutsGiveTheSame) {
  Problem p = problem();
  p.padding = 3;
  const Results all = run(p);
  for (const spec::TensorSpec &tensor : base().tensors)
    if (tensor.written && tensor.shape != spec::Shape::Bytes) {
      ASSERT_EQ(all.count(tensor.name), 1u) << tensor.name;
      for (float value : all.at(tensor.name))
        ASSERT_TRUE(std::isfinite(value) || value == -INFINITY)
            << tensor.name << " has an element that is " << value;
    }
  p.sequenceFirst = true;
  p.padding = 24;
  for (const spec::TensorSpec &tensor : base().tensors)
    if (tensor.optional)
      p.absent.insert(tensor.name);
  expectSame(run(p), all);
}

TEST_P(Table, NeutralGroupsGiveTheSame) {
  Problem p = problem();
  std::vector<const fovea_group_t *> neutral;
  for (size_t row = 0; row != spec::featureGroups().size(); ++row)
    if (GetParam().key.groups[row] != 0)
      if (const auto *reader = readerOf(spec::featureGroups()[row]))
        neutral.push_back(reader->neutral);
  if (neutral.empty())
    return;
  const Results none = run(p);
  for (const fovea_group_t *group : neutral) {
    SCOPED_TRACE("group " + std::to_string(group->group));
    p.groups = {group};
    expectSame(run(p), none);
  }
  if (neutral.size() > 1) {
    p.groups = neutral;
    expectSame(run(p), none);
  }
}

TEST_P(Table, BadTensorsAreRefused) {
  Refused refused(problem());
  const auto fields = params::tensorFieldsOf(GetParam().key.op);
  const auto &tensors = base().tensors;
  const void *const others = fields[0].address(refused.params());
  for (size_t i = 0; i != tensors.size(); ++i) {
    const spec::TensorSpec &tensor = tensors[i];
    const params::TensorField &field = fields[i];
    const std::string name = tensor.name,
                      address = tensor.shape == spec::Shape::Rows
                                    ? name + ".data is "
                                    : name + " is ";
    const auto *own =
        static_cast<const char *>(field.address(refused.params()));
    auto place = [&](const void *at) {
      return [&field, at](auto &params) { field.setAddress(&params, at); };
    };
    if (!tensor.optional)
      refused.expect({address + "NULL"}, place(nullptr));
    refused.expect({address, "no multiple of"}, place(own + 1));
    if (tensor.written)
      refused.expect({name, tensors[0].name, "share memory"}, place(others));
    for (size_t dim = 0; dim != params::strideCount(tensor.shape); ++dim) {
      const std::string stride = name + kStrides[dim] + " is ";
      auto stretch = [&](int64_t to) {
        return [&field, dim, to](auto &params) {
          field.setStride(&params, dim, to);
        };
      };
      refused.expect({stride + "-1"}, stretch(-1));
      if (dim == 2) {
        const int64_t most =
            spec::maxSeqStride(bytesOf(tensor, GetParam().key.dtype));
        refused.expect({stride + std::to_string(most + 1)}, stretch(most + 1));
      }
      // Reading a row again is a broadcast, writing it again a race.
      if (tensor.written)
        refused.expect({stride + "0", "overlap"}, stretch(0));
      else
        refused.expectSelect(FOVEA_STATUS_OK, stretch(0));
    }
  }
}

TEST_P(Table, BadSizesAreRefused) {
  Refused refused(problem());
  for (const spec::Extent extent : spec::kExtents) {
    const std::string name = spec::toString(extent);
    auto resize = [&](int64_t size) {
      return [extent, size](auto &params) {
        params.*params::sizeField<std::remove_reference_t<decltype(params)>>(
                    extent) = size;
      };
    };
    refused.expect({name + " is -1"}, resize(-1));
    refused.expect({name + " is 9223372036854775807"}, resize(INT64_MAX));
  }
  refused.expect({"heads_q (5)", "heads_k (2)"},
                 [](auto &params) { params.heads_q = 5; });
  refused.expect({"heads_q (4)", "heads_k (0)"},
                 [](auto &params) { params.heads_k = 0; });
  refused.expect({"dtype is 99"}, [](auto &params) { params.dtype = 99; });
  refused.expect({"mask is 99"}, [](auto &params) { params.mask = 99; });
  refused.expect({"reserved is 1"}, [](auto &params) { params.reserved = 1; });
  refused.expect({"scale is nan"}, [](auto &params) { params.scale = NAN; });
  refused.expect({"struct_size is 8"},
                 [](auto &params) { params.struct_size = 8; });
}

TEST_P(Table, BadGroupsAreRefused) {
  Refused refused(problem());
  for (size_t row = 0; row != spec::featureGroups().size(); ++row) {
    const auto *reader = readerOf(spec::featureGroups()[row]);
    if (!reader)
      continue;
    SCOPED_TRACE(reader->name);
    // With room for a field of a later version.
    const auto *bytes = reinterpret_cast<const char *>(reader->neutral);
    const uint32_t size = reader->neutral->struct_size;
    std::vector<char> one(bytes, bytes + size), two = one;
    one.resize(size + 8);
    auto *first = reinterpret_cast<fovea_group_t *>(one.data()),
         *second = reinterpret_cast<fovea_group_t *>(two.data());
    auto give = [&](auto &params) { params.groups = first; };

    if (!spec::featureGroups()[row].isOf(GetParam().key.op)) {
      refused.expect({reader->symbol, "alone"}, give);
      continue;
    }
    first->struct_size = 8;
    refused.expect({"struct_size is 8"}, give);
    first->struct_size = size + 8;
    one[size] = 1;
    refused.expect({"later version", "update libfovea"}, give,
                   FOVEA_STATUS_INCOMPATIBLE);
    one[size] = 0;
    if (GetParam().key.groups[row] != 0)
      refused.expectSelect(FOVEA_STATUS_OK, give);
    first->next = second;
    refused.expect({reader->symbol, "twice"}, give);
    first->next = nullptr;
    first->group = 0x7fffffff;
    refused.expect({"group 2147483647", "does not know"}, give,
                   FOVEA_STATUS_INCOMPATIBLE);
  }
}

// What the cases above have to know of each row.
TEST(Tables, GroupsHaveNeutralStructures) {
  for (const spec::GroupSpec &group : spec::featureGroups()) {
    const rt::GroupReader *reader = readerOf(group);
    ASSERT_TRUE(reader && reader->neutral)
        << "runtime/src/Groups.cpp has no neutral structure of the group '"
        << group.name << "'; give one that leaves results as they are";
    EXPECT_EQ(reader->neutral->group, reader->group) << group.name;
    EXPECT_GT(reader->neutral->struct_size, sizeof(fovea_group_t))
        << group.name;
    for (const spec::TensorSpec &tensor : group.tensors)
      EXPECT_TRUE(tensor.optional)
          << "the suite fills no tensors of groups, and '" << group.name
          << "' can't be without " << tensor.name;
  }
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Table);
INSTANTIATE_TEST_SUITE_P(Kernels, Table, testing::ValuesIn(kernelCases()),
                         [](const testing::TestParamInfo<KernelCase> &info) {
                           return info.param.name;
                         });
