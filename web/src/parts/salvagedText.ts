// Describes the part that was left of a damaged store.
import type { Salvaged } from '../../runtime/src/index';
import { bytes, number } from '../i18n/i18n.svelte';
import { m } from '../i18n/shared';

const size = (n: number): string => bytes(1000 * Math.ceil(n / 1000)); // a part of a kilobyte is not "0 kB"

/** Returns the numbers of records that were read and of bytes that were removed, in words. */
export const salvagedText = ({ records, lost, lostPictures }: Salvaged): string =>
  m.store_salvaged({ n: number(records), size: size(lost), pictures: size(lostPictures) });
