// Numbers about many measured values.

/** The value below which `share` of them lie, by nearest rank. */
export function quantile(values, share) {
  if (values.length === 0) return NaN;
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(share * sorted.length) - 1))];
}

export function spread(values) {
  return {
    count: values.length,
    p50: quantile(values, 0.5),
    p95: quantile(values, 0.95),
    p99: quantile(values, 0.99),
    max: quantile(values, 1),
  };
}

/** The run of several that stands in the middle by what `key` gives. */
export function medianRun(runs, key) {
  const sorted = [...runs].sort((a, b) => key(a) - key(b));
  return sorted[Math.floor((sorted.length - 1) / 2)];
}

/** A number in words: as many digits as it deserves. */
export function number(value, digits = 0) {
  if (!Number.isFinite(value)) return "–";
  return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** `12 / 34 / 56 ms` of p50, p95 and p99. */
export function triple({ p50, p95, p99 }) {
  return `${number(p50)} / ${number(p95)} / ${number(p99)} ms`;
}

/** `3.4 KiB` or `1.2 MiB`. */
export function size(bytes) {
  if (bytes < 1024) return `${number(bytes)} B`;
  if (bytes < 1024 * 1024) return `${number(bytes / 1024, 1)} KiB`;
  return `${number(bytes / 1024 / 1024, 2)} MiB`;
}
