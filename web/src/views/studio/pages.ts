// The pages in the side bar and in the tabs.
import Braces from '@lucide/svelte/icons/braces';
import Eye from '@lucide/svelte/icons/eye';
import Images from '@lucide/svelte/icons/images';
import KeyRound from '@lucide/svelte/icons/key-round';
import ListChecks from '@lucide/svelte/icons/list-checks';
import RefreshCw from '@lucide/svelte/icons/refresh-cw';
import Search from '@lucide/svelte/icons/search';
import Spline from '@lucide/svelte/icons/spline';
import Tags from '@lucide/svelte/icons/tags';
import type { Component } from 'svelte';
import { m } from '../../i18n/i18n.svelte';
import { pathIn, type Route } from '../../routing/routes';

export interface Page {
  readonly href: string;
  readonly routes: readonly Route[]; // routes on which the page is marked as the current one
  readonly icon: Component;
  readonly name: () => string;
  readonly counts?: 'inputs' | 'models' | 'next'; // kind of things that the number next to the name counts
}

/** Returns the pages for work with an application. */
export const working = (app: string): readonly Page[] => [
  look('/'),
  {
    href: pathIn(app, 'inputs'),
    routes: ['/:app/inputs', '/:app/inputs/:input'],
    icon: Images,
    name: () => m.pictures(),
    counts: 'inputs',
  },
  { href: pathIn(app, 'search'), routes: ['/:app/search'], icon: Search, name: () => m.group_search() },
  {
    href: pathIn(app, 'next'),
    routes: ['/:app/next'],
    icon: ListChecks,
    name: () => m.studio_next(),
    counts: 'next',
  },
  {
    href: pathIn(app, 'models'),
    routes: ['/:app/models', '/:app/models/:model', '/:app/models/:model/:version'],
    icon: Spline,
    name: () => m.models(),
    counts: 'models',
  },
  { href: pathIn(app, 'concepts'), routes: ['/:app/concepts'], icon: Tags, name: () => m.concepts() },
];

/** Returns the Look page, which needs no application. Visitors who are not signed in open it at /look. */
export const look = (href: '/' | '/look'): Page => ({
  href,
  routes: ['/', '/look'],
  icon: Eye,
  name: () => m.look(),
});

export const apps: Page = {
  href: '/apps',
  routes: ['/apps', '/apps/:app'],
  icon: KeyRound,
  name: () => m.applications(),
};
export const sync: Page = { href: '/sync', routes: ['/sync'], icon: RefreshCw, name: () => m.sync_title() };
export const docs: Page = { href: '/docs', routes: ['/docs'], icon: Braces, name: () => m.api_reference() };
