// The name and the icon of each kind of clause.
import Braces from '@lucide/svelte/icons/braces';
import CircleDashed from '@lucide/svelte/icons/circle-dashed';
import Hash from '@lucide/svelte/icons/hash';
import Image from '@lucide/svelte/icons/image';
import Link from '@lucide/svelte/icons/link';
import ScanEye from '@lucide/svelte/icons/scan-eye';
import SquareDashed from '@lucide/svelte/icons/square-dashed';
import Tag from '@lucide/svelte/icons/tag';
import type { Component } from 'svelte';
import type { Kind } from './clause';
import { m } from './words';

export const icons: Record<Kind, Component> = {
  predicted: ScanEye,
  labelled: Tag,
  metadata: Braces,
  within: CircleDashed,
  box: SquareDashed,
  similar: Image,
  url: Link,
  input: Hash,
};

export const kinds: readonly Kind[] = ['predicted', 'labelled', 'metadata', 'within', 'box', 'similar', 'url', 'input'];

/** Returns the name of a kind in the reader's language. */
export function kindName(kind: Kind): string {
  return {
    predicted: m.search_kind_predicted,
    labelled: m.search_kind_labelled,
    metadata: m.search_kind_metadata,
    within: m.search_kind_within,
    box: m.search_kind_box,
    similar: m.search_kind_similar,
    url: m.search_kind_url,
    input: m.search_kind_input,
  }[kind]();
}
