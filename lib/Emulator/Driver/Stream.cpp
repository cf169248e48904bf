//===- Stream.cpp - Streams, events and graphs ----------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Driver.h"

using namespace fp8emu;

Graph::~Graph() {
  for (uint64_t address : memory)
    release(address);
}

int fp8emu::submit(StreamState *stream, Graph::Work work) {
  if (Graph *graph = getCapture(stream)) {
    graph->work.push_back(std::move(work));
    return kSuccess;
  }
  return work();
}

FP8EMU_API int cuStreamCreate(StreamState **stream, unsigned) {
  if (int error = enter())
    return error;
  *stream = new StreamState{getCurrent(), nullptr};
  return kSuccess;
}

FP8EMU_API int cuStreamDestroy_v2(StreamState *stream) {
  if (int error = enter())
    return error;
  if (!stream)
    return kInvalidHandle;
  delete stream;
  return kSuccess;
}

FP8EMU_API int cuStreamSynchronize(StreamState *stream) {
  if (Graph *graph = getCapture(stream)) {
    graph->invalid = true;
    return kCaptureUnsupported;
  }
  endOverlap();
  return enter(/*unsafe=*/true);
}

FP8EMU_API int cuStreamQuery(StreamState *stream) {
  return getCapture(stream) ? int{kCaptureUnsupported} : enter();
}

/// A stream that waits for an event of a captured one is captured, too.
FP8EMU_API int cuStreamWaitEvent(StreamState *stream, EventState *event,
                                 unsigned) {
  if (int error = enter())
    return error;
  if (stream && event->capture && !event->capture->ended)
    stream->capture = event->capture;
  return kSuccess;
}

FP8EMU_API int cuStreamIsCapturing(StreamState *stream, int *status) {
  if (int error = enter())
    return error;
  Graph *graph = getCapture(stream);
  *status = !graph ? 0 : graph->invalid ? 2 : 1;
  return kSuccess;
}

FP8EMU_API int cuStreamGetCtx(StreamState *stream, ContextState **context) {
  if (int error = enter())
    return error;
  *context = stream ? stream->context : getCurrent();
  return kSuccess;
}

//===----------------------------------------------------------------------===//
// Events
//===----------------------------------------------------------------------===//

FP8EMU_API int cuEventCreate(EventState **event, unsigned) {
  if (int error = enter())
    return error;
  *event = new EventState;
  return kSuccess;
}

FP8EMU_API int cuEventDestroy_v2(EventState *event) {
  delete event;
  return kSuccess;
}

FP8EMU_API int cuEventRecord(EventState *event, StreamState *stream) {
  if (int error = enter())
    return error;
  event->capture = getCapture(stream) ? stream->capture : nullptr;
  if (event->capture)
    return kSuccess;
  event->time = getDeviceTime();
  event->recorded = true;
  return kSuccess;
}

FP8EMU_API int cuEventSynchronize(EventState *event) {
  endOverlap();
  return event->capture && !event->capture->ended ? int{kCaptureUnsupported}
                                                  : enter(/*unsafe=*/true);
}

FP8EMU_API int cuEventQuery(EventState *) { return enter(); }

FP8EMU_API int cuEventElapsedTime(float *milliseconds, EventState *start,
                                  EventState *end) {
  if (int error = enter())
    return error;
  if (!start->recorded || !end->recorded)
    return kInvalidHandle;
  *milliseconds = static_cast<float>(end->time - start->time) * 1e-6f;
  return kSuccess;
}

/// What headers of CUDA 13 call it.
FP8EMU_API int cuEventElapsedTime_v2(float *milliseconds, EventState *start,
                                     EventState *end) {
  return cuEventElapsedTime(milliseconds, start, end);
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

FP8EMU_API int cuStreamBeginCapture_v2(StreamState *stream, int) {
  if (int error = enter())
    return error;
  if (!stream || getCapture(stream))
    return kCaptureUnsupported;
  stream->capture = std::make_shared<Graph>();
  ++getNumCaptures();
  return kSuccess;
}

FP8EMU_API int cuStreamEndCapture(StreamState *stream, GraphHandle **graph) {
  *graph = nullptr;
  if (!getCapture(stream))
    return kInvalidValue;
  --getNumCaptures();
  std::shared_ptr<Graph> captured = std::move(stream->capture);
  captured->ended = true;
  if (captured->invalid)
    return kCaptureInvalidated;
  *graph = new GraphHandle{std::move(captured)};
  return kSuccess;
}

FP8EMU_API int cuGraphInstantiateWithFlags(GraphHandle **exec,
                                           GraphHandle *graph,
                                           unsigned long long) {
  if (int error = enter())
    return error;
  *exec = new GraphHandle{graph->graph};
  return kSuccess;
}

FP8EMU_API int cuGraphLaunch(GraphHandle *exec, StreamState *stream) {
  if (int error = enter())
    return error;
  return submit(stream, [graph = exec->graph] {
    endOverlap();
    for (const Graph::Work &work : graph->work)
      if (int error = work())
        return error;
    return int{kSuccess};
  });
}

FP8EMU_API int cuGraphDestroy(GraphHandle *graph) {
  delete graph;
  return kSuccess;
}

FP8EMU_API int cuGraphExecDestroy(GraphHandle *exec) {
  delete exec;
  return kSuccess;
}
