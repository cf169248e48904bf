// RUN: fp8-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{expected amax_history_len to be an integer in 1..65536, but got 0}}
func.func private @delayed_history() attributes {r = #fp8.delayed<amax_history_len = 0>}

// -----

// expected-error @below {{expected margin to be 0 with compat flax, which knows no other}}
func.func private @delayed_flax() attributes {r = #fp8.delayed<margin = 1, compat = flax>}

// -----

// expected-error @below {{expected at most one of x_dim, w_dim and grad_dim to be 2}}
func.func private @block_2d_2d() attributes {r = #fp8.block<x_dim = 2>}

// -----

// expected-error @below {{expected w_dim to be 1 or 2, but got 3}}
func.func private @block_dim() attributes {r = #fp8.block<w_dim = 3>}

// -----

// expected-error @below {{expected amax_epsilon to be a finite number of at least 0, but got -1}}
func.func private @epsilon() attributes {r = #fp8.rowwise<amax_epsilon = -1.0>}

// -----

// expected-error @below {{expected 'fp8.recipe' to be a recipe, e.g. #fp8.current, but got "current"}}
func.func private @recipe_attribute() attributes {fp8.recipe = "current"}

// -----

// expected-error @below {{expected 'fp8.role' to be #fp8.role<fprop>, #fp8.role<dgrad> or #fp8.role<wgrad>}}
func.func private @role_attribute() attributes {fp8.role = "fprop"}

// -----

// expected-error @below {{expected 'fp8.name' to be a string, but got 3}}
func.func private @name_attribute(tensor<1xf32> {fp8.name = 3 : i64})

// -----

// expected-error @below {{expected 'fp8.weight' to be a unit attribute, but got true}}
func.func private @weight_attribute(tensor<1xf32> {fp8.weight = true})

// -----

// expected-error @below {{expected state to be the path of a saved state, but got ''}}
func.func private @static_path() attributes {r = #fp8.static<state = "">}

// -----

// expected-error @below {{expected 'fp8.operands' to be two of #fp8.operand, but got [#fp8.operand<weight>, 1]}}
func.func private @operands_attribute() attributes {fp8.operands = [#fp8.operand<weight>, 1]}

// -----

// expected-error @below {{expected 'fp8.state_manifest' to be a string, but got 1 : i64}}
func.func private @state_manifest_attribute() attributes {fp8.state_manifest = 1}

// -----

// expected-error @below {{expected an attribute of the fp8 dialect, but got 'fp8.recipie'; did you mean 'fp8.recipe'?}}
func.func private @misspelt() attributes {fp8.recipie = #fp8.block}

// -----

// expected-error @below {{expected an attribute of the fp8 dialect, but got 'fp8.wieght'; did you mean 'fp8.weight'?}}
func.func private @misspelt_argument(%w: tensor<4xf32> {fp8.wieght})

// -----

// expected-error @below {{expected an attribute of the fp8 dialect, but got 'fp8.something_else'}}
func.func private @unknown_result() -> (tensor<4xf32> {fp8.something_else})

// -----

// expected-error @below {{expected 'fp8.invariant' to be a unit attribute, but got true}}
func.func private @invariant_attribute() attributes {fp8.invariant = true}

// -----

// expected-error @below {{expected 'fp8.rough' to be a unit attribute, but got true}}
func.func private @rough_attribute() attributes {fp8.rough = true}

// -----

// expected-error @below {{expected 'fp8.exact' to be a unit attribute, but got true}}
func.func private @exact_attribute() attributes {fp8.exact = true}

// -----

// expected-error @below {{expected 'fp8.arranged' on a tensor of f4E2M1FN or f8E4M3FN with two dimensions or more, but got 'tensor<512x256xf8E5M2>'}}
func.func private @arranged_bytes(%w: tensor<512x256xf8E5M2> {fp8.arranged = 1})

// -----

// expected-error @below {{expected 'fp8.arranged' on a tensor of f4E2M1FN or f8E4M3FN with two dimensions or more, but got 'f32'}}
func.func private @arranged_scalar(%w: f32 {fp8.arranged = 1})

// -----

// expected-error @below {{expected 'fp8.arranged' on a tensor of f4E2M1FN or f8E4M3FN with two dimensions or more, but got 'tensor<*xf4E2M1FN>'}}
func.func private @arranged_unranked(%w: tensor<*xf4E2M1FN> {fp8.arranged = 1})

// -----

// expected-error @below {{expected 'fp8.arranged' on an argument of a function alone}}
func.func private @arranged_result() -> (tensor<512x256xf4E2M1FN> {fp8.arranged = 1})

// -----

// expected-error @below {{expected 'fp8.arranged' on an argument of a function alone}}
func.func private @arranged_function() attributes {fp8.arranged = 1}
