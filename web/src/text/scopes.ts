// The scopes of a key, in groups that a person understands. The server's table lists the scopes that a scope needs. The groups also include
// the scopes of the data that their calls read: for example, predict reads models and concepts.
import type { Scope } from '../api/console';

export const groupIds = [
  'predict',
  'search',
  'read_inputs',
  'change_inputs',
  'read_models',
  'train_models',
  'change_workflows',
] as const;
export type GroupId = (typeof groupIds)[number];

interface Group {
  readonly own: readonly string[]; // scopes of the group
  readonly needs: readonly GroupId[]; // groups without which its calls are refused or answer less
}

export const groups: Readonly<Record<GroupId, Group>> = {
  predict: { own: ['Predict', 'Predict_Feedback'], needs: ['read_models'] },
  search: { own: ['Search', 'Search_Feedback'], needs: ['predict', 'read_inputs', 'read_models'] },
  read_inputs: { own: ['Inputs_Get', 'Concepts_Get'], needs: [] },
  change_inputs: {
    own: ['Inputs_Add', 'Inputs_Patch', 'Inputs_Delete', 'Concepts_Add', 'Concepts_Patch'],
    needs: ['predict', 'read_inputs', 'read_models'],
  },
  read_models: { own: ['Models_Get', 'Concepts_Get', 'Workflows_Get'], needs: [] },
  train_models: {
    own: ['Models_Add', 'Models_Patch', 'Models_Train', 'Models_Delete', 'Concepts_Add'],
    needs: ['read_inputs', 'read_models'],
  },
  change_workflows: { own: ['Workflows_Add', 'Workflows_Patch', 'Workflows_Delete'], needs: ['read_models'] },
};

/** The scope that contains all others. */
export const allScopes = 'All';

/** The chosen scopes. All functions return a new set instead of changing it. */
export type ScopeSet = ReadonlySet<string>;

/** Returns whether none, some or all scopes of a group are chosen. Scopes that it shares with a completely chosen group do not count. */
export function groupShare(chosen: ScopeSet, group: GroupId): 'none' | 'some' | 'whole' {
  if (isWhole(chosen, group)) return 'whole';
  const others = new Set(groupIds.filter((id) => isWhole(chosen, id)).flatMap((id) => groups[id].own));
  return groups[group].own.some((s) => chosen.has(s) && !others.has(s)) ? 'some' : 'none';
}

function isWhole(chosen: ScopeSet, group: GroupId): boolean {
  return chosen.has(allScopes) || groups[group].own.every((s) => chosen.has(s));
}

/** Returns the chosen scopes with a group and everything that it needs. also: the other groups that this added. */
export function withGroup(
  chosen: ScopeSet,
  group: GroupId,
  table: readonly Scope[],
): { chosen: ScopeSet; also: GroupId[] } {
  const next = new Set(chosen);
  const also: GroupId[] = [];
  for (const id of [group, ...groups[group].needs]) {
    if (id !== group && groupShare(next, id) !== 'whole') also.push(id);
    for (const scope of groups[id].own) add(next, scope, table);
  }
  return { chosen: next, also };
}

/** Returns the chosen scopes without a group and those that need it. Scopes that it shares with other completely chosen groups stay. */
export function withoutGroup(chosen: ScopeSet, group: GroupId, table: readonly Scope[]): ScopeSet {
  const removed = groupIds.filter((id) => id === group || groups[id].needs.includes(group));
  const remaining = groupIds.filter((id) => !removed.includes(id) && groupShare(chosen, id) === 'whole');
  const remainingScopes = new Set(remaining.flatMap((id) => groups[id].own));
  let next: ScopeSet = chosen;
  for (const scope of removed.flatMap((id) => groups[id].own)) {
    if (!remainingScopes.has(scope)) next = withoutScope(next, scope, table);
  }
  return next;
}

/** Returns the chosen scopes with one scope and the scopes that it needs. */
export function withScope(chosen: ScopeSet, scope: string, table: readonly Scope[]): ScopeSet {
  const next = new Set(chosen);
  add(next, scope, table);
  return next;
}

/** Returns the chosen scopes without one scope and the scopes that need it. */
export function withoutScope(chosen: ScopeSet, scope: string, table: readonly Scope[]): ScopeSet {
  const next = new Set(chosen);
  next.delete(scope);
  for (const other of table) {
    if (other.needs.includes(scope) && next.has(other.id)) return withoutScope(next, other.id, table);
  }
  return next;
}

/** Splits the scopes of a key into complete groups and the other scopes. */
export function describeScopes(scopes: readonly string[]): { everything: boolean; groups: GroupId[]; rest: string[] } {
  const chosen = new Set(scopes);
  if (chosen.has(allScopes)) return { everything: true, groups: [], rest: [] };
  const fullGroups = groupIds.filter((id) => groupShare(chosen, id) === 'whole');
  const groupScopes = new Set(fullGroups.flatMap((id) => groups[id].own));
  return { everything: false, groups: fullGroups, rest: scopes.filter((s) => !groupScopes.has(s)) };
}

/** Returns the first group with a scope; undefined if there is none. scope: its displayed name. */
export function groupOf(scope: string): GroupId | undefined {
  return groupIds.find((id) => groups[id].own.some((own) => scopeName(own) === scope));
}

/** Returns the displayed name of a scope. */
export function scopeName(scope: string): string {
  return scope.replaceAll('_', ':');
}

function add(set: Set<string>, scope: string, table: readonly Scope[]): void {
  if (set.has(scope)) return;
  set.add(scope);
  for (const need of table.find((s) => s.id === scope)?.needs ?? []) add(set, need, table);
}
