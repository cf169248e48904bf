//===- Order.cpp - What barriers, fences and waits order ------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Checker.h"

using namespace fp8emu;

/// A warp's first agent.
static size_t getAgent(const Warp &warp) { return size_t{warp.agent} * kLanes; }

Checker::Checker(Cluster &cluster)
    : cluster(cluster), checks(cluster.grid.settings.checks),
      strict(cluster.grid.settings.strict),
      numAgents(static_cast<uint32_t>(cluster.warps.size()) * kLanes) {
  launchAgent = addAgent();
  for (auto &cta : cluster.ctas)
    shadows.emplace_back(cta->sharedBytes);
  if (cluster.grid.program.tensorGroup)
    for (size_t i = 0; i < cluster.ctas.size(); ++i)
      tensorShadows.emplace_back(kTensorColumns * kTensorLanes / 16);
  for (Warp *warp : cluster.warps)
    warp->view.parts.push_back(
        {warp->live, std::make_shared<View>(), {}, {}, {}});
}

WarpView::Part &Checker::getPart(Warp &warp, unsigned lane) {
  for (WarpView::Part &part : warp.view.parts)
    if (part.lanes >> lane & 1)
      return part;
  return warp.view.parts.front();
}

template <class F>
void Checker::forEachPart(Warp &warp, Mask lanes, F change) {
  std::vector<WarpView::Part> &parts = warp.view.parts;
  for (size_t i = 0, count = parts.size(); i < count; ++i) {
    Mask some = parts[i].lanes & lanes;
    if (!some)
      continue;
    if (some != parts[i].lanes) {
      WarpView::Part rest = parts[i];
      rest.lanes &= ~some;
      parts[i].lanes = some;
      parts.push_back(std::move(rest));
    }
    if (parts[i].view.use_count() > 1)
      parts[i].view = std::make_shared<View>(*parts[i].view);
    change(parts[i]);
  }
}

void Checker::publishOwn(Warp &warp, Mask lanes, Clock &known) const {
  size_t first = getAgent(warp);
  if (known.size() < first + kLanes)
    known.resize(first + kLanes);
  for (Mask rest = lanes; rest; rest &= rest - 1) {
    auto lane = static_cast<unsigned>(__builtin_ctz(rest));
    known[first + lane] = std::max(known[first + lane], warp.view.time);
  }
}

void Checker::release(Warp &warp, Mask lanes, View &into) {
  for (const WarpView::Part &part : warp.view.parts)
    if (part.lanes & lanes)
      join(into, *part.view);
  publishOwn(warp, lanes, into.known);
  ++warp.view.time;
}

void Checker::releaseFenced(Warp &warp, Mask lanes, View &into) {
  for (const WarpView::Part &part : warp.view.parts) {
    if (!(part.lanes & lanes))
      continue;
    if (part.released)
      join(into, *part.released);
    join(into.tensor, part.view->tensor);
  }
}

void Checker::acquire(Warp &warp, Mask lanes, const View &from) {
  // Most often a part knows it already, or is not alone to learn it.
  Mask need = 0;
  for (const WarpView::Part &part : warp.view.parts)
    if ((part.lanes & lanes) && !(isKnown(from.known, part.view->known) &&
                                  isKnown(from.fenced, part.view->fenced) &&
                                  isKnown(from.tensor, part.view->tensor) &&
                                  isKnown(from.others, part.view->others)))
      need |= part.lanes & lanes;
  if (need)
    forEachPart(warp, need,
                [&](WarpView::Part &part) { join(*part.view, from); });
}

void Checker::acquireLater(Warp &warp, Mask lanes, const View &from) {
  forEachPart(warp, lanes, [&](WarpView::Part &part) {
    auto more = std::make_shared<View>(from);
    if (part.pending)
      join(*more, *part.pending);
    part.pending = std::move(more);
    join(part.view->tensor, from.tensor);
  });
}

void Checker::synchronize(Warp &warp, Mask lanes) {
  auto all = std::make_shared<View>();
  release(warp, lanes, *all);
  Mask rest = lanes;
  std::vector<WarpView::Part> &parts = warp.view.parts;
  std::shared_ptr<const Clock> settled;
  for (WarpView::Part &part : parts) {
    if ((part.lanes & lanes) && part.settled) {
      auto both = std::make_shared<Clock>(*part.settled);
      if (settled)
        join(*both, *settled);
      settled = std::move(both);
    }
    part.lanes &= ~lanes;
  }
  std::erase_if(parts, [](const WarpView::Part &p) { return p.lanes == 0; });
  parts.push_back({rest, std::move(all), {}, {}, std::move(settled)});
}

void Checker::fence(Warp &warp, Mask lanes) {
  uint32_t time = warp.view.time;
  forEachPart(warp, lanes, [&](WarpView::Part &part) {
    if (part.pending)
      join(*part.view, *part.pending);
    part.pending = nullptr;
    auto now = std::make_shared<View>(*part.view);
    publishOwn(warp, part.lanes, now->known);
    part.released = std::move(now);
  });
  warp.view.time = time + 1;
}

void Checker::fenceProxy(Warp &warp, Mask lanes) {
  forEachPart(warp, lanes, [&](WarpView::Part &part) {
    join(part.view->fenced, part.view->known);
    publishOwn(warp, part.lanes, part.view->fenced);
  });
  ++warp.view.time;
}

void Checker::learn(Warp &warp, Mask lanes, Announcement done) {
  if (done.agent == kNoAgent)
    return;
  Mask need = 0;
  for (const WarpView::Part &part : warp.view.parts)
    if (getTime(part.view->known, done.agent) < done.time)
      need |= part.lanes & lanes;
  if (need)
    forEachPart(warp, need, [&](WarpView::Part &part) {
      raise(part.view->known, done.agent, done.time);
    });
}

void Checker::fenceTensorBefore(Warp &warp, Mask lanes) {
  forEachPart(warp, lanes, [&](WarpView::Part &part) {
    join(part.view->tensor, part.view->known);
    for (auto &[lane, issuer] : warp.tensor.issuers)
      if (issuer.agent && (part.lanes >> lane & 1))
        raise(part.view->tensor, issuer.agent + 1, issuer.issued);
  });
}

void Checker::fenceTensorAfter(Warp &warp, Mask lanes) {
  forEachPart(warp, lanes, [&](WarpView::Part &part) {
    part.settled = std::make_shared<Clock>(part.view->tensor);
  });
}

void Checker::publishTensor(Warp &warp, unsigned lane, Announcement issued,
                            View &into) {
  into = *getPart(warp, lane).view;
  join(into.tensor, into.known);
  for (uint32_t agent : {issued.agent, issued.agent + 1}) {
    raise(into.known, agent, issued.time);
    raise(into.tensor, agent, issued.time);
  }
}

/// What an access of a word orders: releases publish there, acquires learn.
void Checker::order(Warp &warp, const Op &op, unsigned lane,
                    const uint8_t *word, Access access) {
  if (cluster.grid.global && isGlobal(warp, word))
    return orderGlobal(warp, op, lane, word, access);
  Mask one = Mask{1} << lane;
  if (access != Access::Write) {
    auto it = words.find(word);
    if (it != words.end()) {
      if (op.flags & kAcquire)
        acquire(warp, one, it->second);
      else
        acquireLater(warp, one, it->second);
    }
  }
  if (access != Access::Read) {
    // Another store ends what earlier ones have released.
    if (access == Access::Write)
      words.erase(word);
    if (op.flags & kRelease)
      release(warp, one, words[word]);
    else if (getPart(warp, lane).released)
      releaseFenced(warp, one, words[word]);
  }
}
