//===- CaseMemory.cpp - what cases of tests have on the device ------------===//

#include "CaseMemory.h"
#include <gtest/gtest.h>

using namespace fovea;
using namespace fovea::test;

void CaseMemory::addSequences(run::Session &session, const std::string &text,
                              run::ForwardCase &c) {
  std::string error;
  const auto shape = run::parseSequences(text, error);
  ASSERT_TRUE(shape) << error;
  sequences = std::make_unique<run::CaseSequences>(*shape, c);
  ASSERT_EQ(sequences->upload(session), "");
  c.given.push_back(sequences->group());
}

void CaseMemory::addScore(run::Session &session, const ScoreRecord &program,
                          const std::vector<run::CaptureFill> &fills,
                          run::ForwardCase &c, uint8_t gradients,
                          uint8_t stored) {
  const auto captures = spec::capturesOfProgram(program.text);
  ASSERT_TRUE(captures) << captures.status().message();
  score = std::make_unique<run::CaseScore>(program.name, *captures, fills, c);
  score->wantGradients(gradients, stored);
  ASSERT_EQ(score->upload(session), "");
  std::string error;
  c.score = reference::readScoreProgram(program.text, score->values(), error);
  ASSERT_TRUE(c.score) << error;
  c.scoreName = program.name;
  c.scored = gradients ? score.get() : nullptr;
  c.given.push_back(score->group());
}

void CaseMemory::addBlocks(run::Session &session, const run::BlocksFill &fill,
                           run::ForwardCase &c) {
  blocks = std::make_unique<run::CaseBlocks>(fill, c);
  ASSERT_EQ(blocks->upload(session), "");
  c.listed = blocks->listed();
  c.given.push_back(blocks->group());
}

reference::Dropout fovea::test::dropoutOf(const run::ForwardCase &c, float p,
                                          uint64_t seed, uint64_t offset,
                                          bool swapsWords) {
  return {p,       seed,   offset, swapsWords,
          c.heads, c.seqQ, c.seqK, /*firstBatch=*/0};
}
