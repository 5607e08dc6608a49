import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Scope } from '../api/console';
import {
  describeScopes,
  groupIds,
  groupOf,
  groupShare,
  groups,
  scopeName,
  withGroup,
  withoutGroup,
  withoutScope,
  withScope,
} from './scopes';

const scope = (id: string, ...needs: string[]): Scope => ({ id, name: scopeName(id), needs });
const table: Scope[] = [
  scope('All'),
  ...['Predict', 'Predict_Feedback', 'Search', 'Search_Feedback'].map((id) => scope(id)),
  ...['Inputs', 'Concepts', 'Models', 'Workflows'].flatMap((resource) => [
    scope(`${resource}_Get`),
    scope(`${resource}_Add`, `${resource}_Get`),
    scope(`${resource}_Patch`, `${resource}_Get`),
    scope(`${resource}_Delete`, `${resource}_Add`, `${resource}_Get`),
  ]),
  scope('Models_Train', 'Models_Get'),
].filter((s) => s.id !== 'Concepts_Delete');
const none: ReadonlySet<string> = new Set<string>();

test('the groups have every scope except All', () => {
  const groupScopes = new Set(groupIds.flatMap((id) => groups[id].own));
  assert.deepEqual(
    [...groupScopes].sort(),
    table
      .map((s) => s.id)
      .filter((id) => id !== 'All')
      .sort(),
  );
});

test('a group adds the scopes that its calls need, and names their groups', () => {
  const { chosen, also } = withGroup(none, 'search', table);
  assert.deepEqual(also, ['predict', 'read_inputs', 'read_models']);
  for (const id of ['Search', 'Predict', 'Inputs_Get', 'Concepts_Get', 'Models_Get', 'Workflows_Get']) {
    assert.ok(chosen.has(id), id);
  }
  assert.equal(groupShare(chosen, 'change_inputs'), 'none');
  assert.deepEqual(withGroup(chosen, 'predict', table).also, []);
});

test('no group stays without the scopes that it needs', () => {
  for (const first of groupIds) {
    for (const off of groupIds) {
      const everything = groupIds.reduce((c, id) => withGroup(c, id, table).chosen, none);
      const left = withoutGroup(withGroup(everything, first, table).chosen, off, table);
      assert.notEqual(groupShare(left, off), 'whole', off);
      for (const id of groupIds) {
        if (groupShare(left, id) !== 'whole') continue;
        for (const need of groups[id].needs)
          assert.equal(groupShare(left, need), 'whole', `${id} without ${need} after ${off}`);
      }
    }
  }
});

test('removing a group keeps the scopes that other groups share with it', () => {
  const both = withGroup(withGroup(none, 'read_inputs', table).chosen, 'read_models', table).chosen;
  const left = withoutGroup(both, 'read_inputs', table);
  assert.deepEqual([...left].sort(), ['Concepts_Get', 'Models_Get', 'Workflows_Get']);
});

test('a group is chosen in part only by scopes that it does not share', () => {
  const { chosen } = withGroup(none, 'predict', table);
  assert.equal(groupShare(chosen, 'read_models'), 'whole');
  assert.equal(groupShare(chosen, 'read_inputs'), 'none'); // read_models needs Concepts:Get too
  assert.equal(groupShare(withScope(chosen, 'Inputs_Get', table), 'read_inputs'), 'whole');
  assert.equal(groupShare(withScope(none, 'Inputs_Get', table), 'read_inputs'), 'some');
});

test('adding a scope adds the scopes that it needs, and removing one removes those that need it', () => {
  const chosen = withScope(none, 'Inputs_Delete', table);
  assert.deepEqual([...chosen].sort(), ['Inputs_Add', 'Inputs_Delete', 'Inputs_Get']);
  assert.deepEqual([...withoutScope(chosen, 'Inputs_Get', table)], []);
  assert.deepEqual([...withoutScope(chosen, 'Inputs_Delete', table)].sort(), ['Inputs_Add', 'Inputs_Get']);
});

test('a key is described by its groups and its remaining scopes', () => {
  assert.deepEqual(describeScopes(['All']), { everything: true, groups: [], rest: [] });
  assert.deepEqual(describeScopes(['Predict', 'Predict_Feedback', 'Inputs_Get']), {
    everything: false,
    groups: ['predict'],
    rest: ['Inputs_Get'],
  });
  assert.deepEqual(describeScopes(['Tomorrow_Add']).rest, ['Tomorrow_Add']);
  assert.equal(scopeName('Inputs_Get'), 'Inputs:Get');
});

test('a scope has the name of its group', () => {
  assert.equal(groupOf('Models:Train'), 'train_models');
  assert.equal(groupOf('Concepts:Get'), 'read_inputs');
  assert.equal(groupOf('Tomorrow:Add'), undefined);
});
