/* Uses libfp8rt's scaling state as a C program without our build would. */

#include "fp8/Runtime/ScalingState.h"

#include <stdio.h>
#include <string.h>

static const char manifest[] =
    "{\"version\": 1, \"amax_history_len\": 3, \"slots\": ["
    "{\"name\": \"x\", \"format\": \"e4m3\"},"
    "{\"name\": \"dy\", \"format\": \"e5m2\"}]}";

static void check(fp8rt_status status) {
  if (status != FP8RT_OK)
    printf("%s: %s\n", fp8rt_stringify_status(status), fp8rt_get_last_error());
}

int main(int argc, char **argv) {
  fp8rt_state state = 0, loaded = 0;
  fp8rt_state_rows rows = {.struct_size = sizeof(rows)};
  fp8rt_load_report report = {.struct_size = sizeof(report)};
  float history[3];
  int step;

  if (argc != 2 || fp8rt_get_version() != FP8RT_VERSION)
    return 1;
  check(fp8rt_state_create(manifest, strlen(manifest), &state));
  check(fp8rt_state_get_rows(state, &rows));
  for (step = 0; step < 3; ++step) {
    rows.amax[0] = (float)(1 + step);
    rows.amax[1] = 4.0f;
    check(fp8rt_state_update(state));
  }
  check(fp8rt_state_save(state, argv[1]));
  check(fp8rt_state_create_from_file(argv[1], &loaded));
  check(fp8rt_state_load(loaded, argv[1], FP8RT_LOAD_STRICT, &report));
  printf("matched %d\n", (int)report.matched);
  check(fp8rt_state_get_rows(loaded, &rows));
  printf("scales %.9g %.9g\n", rows.scale[0], rows.scale[1]);
  check(fp8rt_state_get_history(loaded, "x", history, 3));
  printf("history %g %g %g\n", history[0], history[1], history[2]);
  check(fp8rt_state_destroy(loaded));
  check(fp8rt_state_destroy(state));
  check(fp8rt_state_update(state));
  return 0;
}
