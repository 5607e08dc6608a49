// ROC curves: the share of found pictures against the share of false alarms.

/** A ROC curve: pairs of [share of false alarms, share found], both from 0 to 1, in ascending order of false alarms. */
export type Curve = readonly (readonly [number, number])[];

/** Returns the share found at a share of false alarms, interpolated between the curve's points. At a vertical step, it is the maximum. */
export function foundAt(curve: Curve, alarms: number): number {
  let [x0, y0] = [0, 0];
  for (const [x, y] of curve) {
    if (x > alarms) return y0 + ((y - y0) * (alarms - x0)) / (x - x0);
    [x0, y0] = [x, Math.max(y0, y)];
  }
  return x0 >= alarms ? y0 : y0 + ((1 - y0) * (alarms - x0)) / (1 - x0);
}

/** Returns the mean of curves: the mean share found at each share of false alarms. */
export function meanOf(curves: readonly Curve[]): Curve {
  if (!curves.length) return [];
  const steps = 64;
  const at = (x: number) => curves.reduce((sum, c) => sum + foundAt(c, x), 0) / curves.length;
  return [[0, 0], ...Array.from({ length: steps + 1 }, (_, i) => [i / steps, at(i / steps)] as const)];
}
