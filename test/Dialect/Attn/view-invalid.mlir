// RUN: aot-opt %s --split-input-file --verify-diagnostics

func.func @runs(%base: !llvm.ptr<1>, %offset: i64, %rows: i32, %stride: i32) {
  // expected-error @below {{has 2 numbers of runs, not four: first, length, count, distance}}
  %view = attn.view %base[%offset] rows %rows stride %stride runs(%rows, %rows)
    : !attn.view<40 x bf16>
  return
}

// -----

func.func @stored_in_runs(%base: !llvm.ptr<1>, %offset: i64, %rows: i32,
                          %stride: i32, %tile: tensor<32x64xbf16>) {
  // expected-error @below {{has rows in runs, which are only loaded from}}
  %view = attn.view %base[%offset] rows %rows stride %stride
    runs(%rows, %rows, %rows, %rows) : !attn.view<40 x bf16>
  attn.store %tile, %view : tensor<32x64xbf16>, !attn.view<40 x bf16>
  return
}

// -----

func.func @from_in_runs(%base: !llvm.ptr<1>, %offset: i64, %rows: i32, %stride: i32) {
  // expected-error @below {{has rows in runs, which begin with the first}}
  %view = attn.view %base[%offset] rows %rows stride %stride
    runs(%rows, %rows, %rows, %rows) from %rows : !attn.view<40 x bf16>
  return
}

// -----

func.func @stored_from(%base: !llvm.ptr<1>, %offset: i64, %rows: i32,
                       %stride: i32, %tile: tensor<32x64xbf16>) {
  // expected-error @below {{has rows out of bounds ahead of others, which are only loaded from}}
  %view = attn.view %base[%offset] rows %rows stride %stride from %rows
    : !attn.view<40 x bf16>
  attn.store %tile, %view : tensor<32x64xbf16>, !attn.view<40 x bf16>
  return
}
