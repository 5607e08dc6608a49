import type { Unit } from './clause';
import { m } from './words';

/** Returns the short names of the units of a radius. */
export function unitNames(): Record<Unit, string> {
  return { km: m.search_unit_km(), mi: m.search_unit_mi(), deg: m.search_unit_deg(), rad: m.search_unit_rad() };
}
