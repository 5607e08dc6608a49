import { m } from '../i18n/shared';
import { allScopes, describeScopes, type GroupId, groupOf, scopeName } from './scopes';

const names: Record<GroupId, () => string> = {
  predict: () => m.group_predict(),
  search: () => m.group_search(),
  read_inputs: () => m.group_read_inputs(),
  change_inputs: () => m.group_change_inputs(),
  read_models: () => m.group_read_models(),
  train_models: () => m.group_train_models(),
  change_workflows: () => m.group_change_workflows(),
};

const texts: Record<GroupId, () => string> = {
  predict: () => m.group_predict_text(),
  search: () => m.group_search_text(),
  read_inputs: () => m.group_read_inputs_text(),
  change_inputs: () => m.group_change_inputs_text(),
  read_models: () => m.group_read_models_text(),
  train_models: () => m.group_train_models_text(),
  change_workflows: () => m.group_change_workflows_text(),
};

/** Returns the name of a group of scopes. */
export const groupName = (id: GroupId): string => names[id]();

/** Returns the description of the actions that a group of scopes permits. */
export const groupText = (id: GroupId): string => texts[id]();

/** Returns the displayed names of a key's scopes: groups in the reader's language, single scopes untranslated. */
export function permissionNames(scopes: readonly string[]): string[] {
  const permissions = describeScopes(scopes);
  return permissions.everything
    ? [m.group_all()]
    : [...permissions.groups.map(groupName), ...permissions.rest.map(scopeName)];
}

/** Returns the displayed names of the groups with scopes that a key lacks. An answer names these scopes. */
export function missingNames(scopes: readonly string[]): string[] {
  const word = (scope: string) => {
    if (scope === allScopes) return m.group_all();
    const group = groupOf(scope);
    return group ? groupName(group) : scope;
  };
  return [...new Set(scopes.map(word))];
}
