//===- CompilerApi.h - the compiler's library at run time -------*- C++ -*-===//
//
// libfovea_compiler, opened with dlopen when the first kernel is missing; so
// nothing of LLVM is in a process that does without.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_RUNTIME_SRC_COMPILERAPI_H
#define FOVEA_RUNTIME_SRC_COMPILERAPI_H

#include "Result.h"
#include "fovea/Package/Package.h"
#include "fovea/compiler.h"

#include <memory>
#include <optional>
#include <vector>

namespace fovea::rt {

/// A score program as a call gives it.
struct ScoreOrder {
  std::string program; ///< names, "softcap,alibi"; empty: none
  std::optional<std::string> text;
  std::optional<std::string> captures; ///< as of givenCaptures()

  /// Equal texts, equal orders.
  std::string str() const {
    return program + '\n' + captures.value_or("any") + '\n' +
           (text ? "text " + *text : std::string());
  }
};

/// One kernel to compile.
struct KernelOrder {
  std::string chip; ///< "gfx942"
  ProblemKey problem;
  std::string algorithm; ///< empty: the compiler's default
  /// The program that the problem's digits stand for, where it has some.
  ScoreOrder score;

  /// Equal texts, equal orders.
  std::string str() const {
    return chip + ";" + problem.str() + ";algorithm=" + algorithm;
  }
};

/// What compiling an order gave.
struct OrderedKernel {
  KernelRecord record; ///< without fingerprint
  std::vector<uint8_t> image;
};

class CompilerApi {
public:
  /// Opens the library; does nothing where that has been done.
  /// \param given  path; empty: beside this library, else by the loader's path
  /// \return NOT_FOUND, INCOMPATIBLE with the remedy
  Result open(const std::string &given);

  const std::string &path() const { return file; }
  const std::string &buildId() const { return build; }

  /// Finds the score program of an order, for its problem's type, whatever the
  /// chip; the problem has no digits yet.
  /// \param refused  becomes true when trying again is of no use
  Result findScore(const KernelOrder &order, uint64_t &digits,
                   ScoreRecord &score, bool &refused) const;

  /// \param refused  becomes true when trying again is of no use
  Result compile(const KernelOrder &order, OrderedKernel &kernel,
                 bool &refused) const;

private:
  struct Answer {
    std::unique_ptr<fovea_compiled_t, decltype(&fovea_compiled_destroy)> owner;
    fovea_compiled_info_t info; ///< points into what is owned
  };
  /// Asks a function of the library, with the order's problem and program.
  Result ask(decltype(&fovea_compile) function, const KernelOrder &order,
             fovea_compile_request_t request, Answer &answer,
             bool &refused) const;

  void *handle = nullptr; ///< never closed: LLVM keeps what it has registered
  std::string file, build;
  decltype(&fovea_compiler_version) version = nullptr;
  decltype(&fovea_compiler_build_id) buildIdOf = nullptr;
  decltype(&fovea_compiler_last_message) lastMessage = nullptr;
  decltype(&fovea_compile) compileOne = nullptr;
  decltype(&fovea_compile_find_score) findOne = nullptr;
  decltype(&fovea_compiled_info) infoOf = nullptr;
  decltype(&fovea_compiled_destroy) destroy = nullptr;
};

} // namespace fovea::rt

#endif // FOVEA_RUNTIME_SRC_COMPILERAPI_H
