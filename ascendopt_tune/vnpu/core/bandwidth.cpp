#include "bandwidth.h"

#include <algorithm>

namespace vnpu {

Bandwidth::Bandwidth(const Chip& c) : hbm_(c.hbm_bytes_per_us / c.clock_mhz), l2_(c.l2_bytes_per_us / c.clock_mhz) {
  classes_[kReadHbm].cap = c.mte2_bytes_per_cycle;
  classes_[kReadL2].cap = c.mte2_l2_bytes_per_cycle;
  classes_[kWriteL2].cap = c.mte3_bytes_per_cycle;
}

void Bandwidth::arrive(double now, double bytes, Done done) {
  serve(now);
  Class& c = classes_[done.kind];
  c.waiting.push({c.served + bytes, sequence_++, done});
  awaited_ += done.core != kNobody;
  update_rates();
}

double Bandwidth::next() const {
  double best = kNever;
  for (const Class& c : classes_)
    if (!c.waiting.empty()) best = std::min(best, now_ + std::max(0.0, c.waiting.top().target - c.served) / c.rate);
  return best;
}

Bandwidth::Done Bandwidth::finish() {
  Class* first = nullptr;
  double when = kNever;
  for (Class& c : classes_) {
    if (c.waiting.empty()) continue;
    double t = now_ + std::max(0.0, c.waiting.top().target - c.served) / c.rate;
    if (t < when) when = t, first = &c;
  }
  serve(when);
  first->served = std::max(first->served, first->waiting.top().target);
  Done done = first->waiting.top().done;
  first->waiting.pop();
  awaited_ -= done.core != kNobody;
  update_rates();
  return done;
}

void Bandwidth::serve(double now) {
  double dt = now - now_;
  if (dt > 0)
    for (Class& c : classes_)
      if (!c.waiting.empty()) c.served += c.rate * dt;
  now_ = std::max(now_, now);
}

void Bandwidth::update_rates() {
  auto count = [&](Kind k) { return static_cast<double>(classes_[k].waiting.size()); };
  double through_l2 = count(kReadHbm) + count(kReadL2) + count(kWriteL2);
  for (Class& c : classes_) c.rate = through_l2 > 0 ? std::min(c.cap, l2_ / through_l2) : c.cap;
  double reads = count(kReadHbm), backs = count(kWriteBack);
  Class &read = classes_[kReadHbm], &back = classes_[kWriteBack];
  if (reads > 0) read.rate = std::min(read.rate, hbm_ / (reads + backs));
  if (backs > 0) back.rate = (hbm_ - reads * read.rate) / backs;  // what reads, limited by their cores, leave
}

}  // namespace vnpu
