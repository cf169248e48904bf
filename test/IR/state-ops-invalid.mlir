// RUN: fp8-opt %s --split-input-file --verify-diagnostics

func.func @read_scale_c1(%state: !fp8.state, %slot: index) {
  // expected-error @below {{'fp8.read_scale' op expected scale to have one element, but got 'tensor<2x1xf32>'}}
  %0:2 = fp8.read_scale %state[%slot] : tensor<2x1xf32>
  return
}

// -----

func.func @read_seed_c1(%state: !fp8.state, %slot: index) {
  // expected-error @below {{'fp8.read_seed' op expected seed to be tensor<4xi32>, but got 'tensor<2xi32>'}}
  %0 = fp8.read_seed %state[%slot] : tensor<2xi32>
  return
}

// -----

func.func @read_amax_c1(%state: !fp8.state, %slot: index) {
  // expected-error @below {{'fp8.read_amax' op expected amax to have one element, but got 'tensor<1x?xf32>'}}
  %0 = fp8.read_amax %state[%slot] : tensor<1x?xf32>
  return
}

// -----

func.func @record_amax_c1(%state: !fp8.state, %slot: index, %amax: tensor<?x1xf32>) {
  // expected-error @below {{'fp8.record_amax' op expected amax to have one element, but got 'tensor<?x1xf32>'}}
  fp8.record_amax %amax, %state[%slot] : tensor<?x1xf32>
  return
}

// -----

func.func @record_amax_c2(%state: !fp8.state, %slot: index, %amax: tensor<1x1xf32>, %n: f64) {
  // expected-error @below {{'fp8.record_amax' op expected counts to be underflow and saturation, but got 1 of them}}
  fp8.record_amax %amax, %state[%slot] counts(%n) : tensor<1x1xf32>
  return
}

// -----

func.func @record_amax_c3(%state: !fp8.state, %slot: index, %amax: tensor<1x1xf32>, %n: f64) {
  // expected-error @below {{'fp8.record_amax' op expected no counts with in_place, but got 2 of them}}
  fp8.record_amax %amax, %state[%slot] counts(%n, %n) in_place : tensor<1x1xf32>
  return
}

// -----

func.func @update_scales_c1(%scale: tensor<2xf32>, %history: tensor<16x2xf32>) {
  // expected-error @below {{'fp8.update_scales' op expected scale and amax to have one element for each of the 1 slots, but got 'tensor<2xf32>'}}
  %0:2 = fp8.update_scales %scale, %scale, %history table(#fp8.state_table<#fp8.delayed<amax_history_len = 16>, [#fp8.slot<"x" : f8E4M3FN, fprop activation>]>) : tensor<2xf32>, tensor<16x2xf32>
  return
}

// -----

func.func @update_scales_c2(%scale: tensor<1xf32>, %history: tensor<15x1xf32>) {
  // expected-error @below {{'fp8.update_scales' op expected amax_history to be 'tensor<16x1xf32>', but got 'tensor<15x1xf32>'}}
  %0:2 = fp8.update_scales %scale, %scale, %history table(#fp8.state_table<#fp8.delayed<amax_history_len = 16>, [#fp8.slot<"x" : f8E4M3FN, fprop activation>]>) : tensor<1xf32>, tensor<15x1xf32>
  return
}

// -----

// expected-error @below {{expected a slot to have a name}}
func.func private @slot_name() attributes {s = #fp8.slot<"" : f8E4M3FN, fprop activation>}

// -----

// expected-error @below {{expected the format of slot 'x' to be f8E4M3FN, f8E5M2 or f4E2M1FN, but got 'f8E4M3'}}
func.func private @slot_format() attributes {s = #fp8.slot<"x" : f8E4M3, fprop activation>}

// -----

// expected-error @below {{expected a recipe with state, but got #fp8.current}}
func.func private @table_recipe() attributes {s = #fp8.state_table<#fp8.current, []>}

// -----

// expected-error @below {{expected slots to be #fp8.slot, but got 1 : i64}}
func.func private @table_slots() attributes {s = #fp8.state_table<#fp8.delayed, [1]>}

// -----

// expected-error @below {{expected one slot with the name 'x', but got several}}
func.func private @table_names() attributes {s = #fp8.state_table<#fp8.delayed, [#fp8.slot<"x" : f8E4M3FN, fprop activation>, #fp8.slot<"x" : f8E5M2, fprop activation>]>}

// -----

// expected-error @below {{expected 'fp8.state' to be a #fp8.state_table, but got 1 : i64}}
module attributes {fp8.state = 1} {}

// -----

// expected-error @below {{expected 'fp8.slots' to be "separate" or "shared", but got "own"}}
func.func private @slots() attributes {fp8.slots = "own"}

// -----

// expected-error @below {{expected 'fp8.recompute' to be a unit attribute, but got true}}
func.func private @recompute() attributes {fp8.recompute = true}

// -----

func.func @store_cached_c1(%q: !fp8.scaled<?x8xf8E4M3FN, block = [*, *], scale = f32>, %state: !fp8.state, %slot: index) {
  // expected-error @below {{'fp8.store_cached' op expected a static shape, one f32 scale factor and codes of 8 bits, but got '!fp8.scaled<?x8xf8E4M3FN, block = [*, *], scale = f32>'}}
  fp8.store_cached %q, %state[%slot] : !fp8.scaled<?x8xf8E4M3FN, block = [*, *], scale = f32>
  return
}

// -----

func.func @load_cached_c1(%state: !fp8.state, %slot: index) {
  // expected-error @below {{'fp8.load_cached' op expected a static shape, one f32 scale factor and codes of 8 bits, but got '!fp8.scaled<4x8xf8E4M3FN, block = [1, *], scale = f32>'}}
  %q = fp8.load_cached %state[%slot] : !fp8.scaled<4x8xf8E4M3FN, block = [1, *], scale = f32>
  return
}

// -----

// expected-error @below {{expected the cache of slot 'x' to have a size, but got -1}}
func.func private @slot_cache() attributes {s = #fp8.slot<"x" : f8E4M3FN, fprop weight, cache = -1>}

// -----

// expected-error @below {{expected 'fp8.first_microbatch' to be a unit attribute, but got 1 : i64}}
func.func private @first(i1 {fp8.first_microbatch = 1})

// -----

func.func @update_scales_c3_recipe(%scale: tensor<1xf32>) {
  // expected-error @below {{'fp8.update_scales' op expected the recipe of the table to learn, as #fp8.delayed, but got #fp8.static<state = "m">}}
  %0 = fp8.update_scales %scale, %scale table(#fp8.state_table<#fp8.static<state = "m">, [#fp8.slot<"x" : f8E4M3FN, fprop activation>]>) : tensor<1xf32>
  return
}

// -----

func.func @update_scales_c2_count(%scale: tensor<1xf32>) {
  // expected-error @below {{'fp8.update_scales' op expected state to be 1 tensors, but got 0}}
  %0 = fp8.update_scales %scale, %scale table(#fp8.state_table<#fp8.delayed, [#fp8.slot<"x" : f8E4M3FN, fprop activation>]>) : tensor<1xf32>
  return
}

// -----

func.func @update_state_c1_recipe(%state: !fp8.state) {
  // expected-error @below {{'fp8.update_state' op expected the recipe of the table to learn, as #fp8.delayed, but got #fp8.static<state = "m">}}
  fp8.update_state %state table(<#fp8.static<state = "m">, [#fp8.slot<"x" : f8E4M3FN, fprop activation>]>)
  return
}

// -----

// expected-error @below {{expected 'fp8.state_update' to be a symbol, but got "f"}}
func.func private @state_update() attributes {fp8.state_update = "f"}

// -----

// expected-error @below {{expected 'fp8.state_uses' to have an array of slots for each function, but got {f = 1 : i64}}}
func.func private @state_uses() attributes {fp8.state_uses = {f = 1}}
