module attributes {fp8.recipe = #acme.powers<headroom = -1>} {}
