// Compares the marks of a page with the truth: "Confirmed" with the origin's log, and all others with the lists of the page's host.

/** Returns the name of an operation. */
export const nameOf = ({ writer, seq }) => `${writer}-${seq}`;

/** Returns the names in a value of the header X-Sightline-Operations: WRITER:FIRST-LAST, perhaps several. */
export const namesOf = (value) =>
  value.split(',').flatMap((one) => {
    const [writer, range] = one.trim().split(':');
    const [first, last = first] = range.split('-').map(Number);
    return Array.from({ length: last - first + 1 }, (_, i) => nameOf({ writer, seq: first + i }));
  });

/** Returns the things that an operation in a list of a host changes. */
export function thingsOf({ kind, input_id, concept_id, model_id, version_id, content }) {
  const things = [];
  if (input_id) things.push(`inputs ${input_id}`, ...(content.concepts ?? []).map((c) => `label ${input_id} ${c.id}`));
  if (concept_id) things.push(`concepts ${concept_id}`);
  if (model_id) things.push(`models ${model_id}`);
  if (version_id && kind !== 'feedback') things.push(`versions ${model_id}/${version_id}`);
  return things;
}

/** Returns the things that a conflict or a contradiction marks. */
function disputedBy(conflict) {
  const { verdict, field, input_id, model_id, concept_id } = conflict;
  if (verdict !== 'contradiction')
    return thingsOf({ content: {}, ...conflict }).filter((one) => !one.startsWith('label '));
  if (field === 'deletion') return [];
  if (field === 'name') return [model_id ? `models ${model_id}` : `concepts ${concept_id}`];
  return [`inputs ${input_id}`];
}

/**
 * Returns the false marks "Confirmed" among the marks of a page. made: the operations of its host that the page can know, with the things
 * that they change. log: the names of the operations that the origin has.
 */
export function falselyConfirmed({ found }, made, log) {
  const unheld = new Map();
  for (const [name, things] of made) if (!log.has(name)) for (const thing of things) unheld.set(thing, name);
  return found.flatMap(([view, thing, mark]) => {
    if (mark !== 'confirmed') return [];
    const [what, ...key] = thing.split(' ');
    const missing = what === 'step' ? (log.has(key.join('-')) ? undefined : key.join('-')) : unheld.get(thing);
    return missing ? [`${view}: ${thing} is confirmed, and the origin does not have ${missing}`] : [];
  });
}

/** Returns the marks of a page that differ from the lists of its host, which did not change while the page read. */
export function differences({ late, underway, verdicts }, { status, operations, conflicts }) {
  const worst = new Map();
  const labels = new Map();
  const steps = new Map();
  for (const operation of operations) {
    steps.set(`step ${operation.writer} ${operation.seq}`, operation.state);
    for (const thing of thingsOf(operation)) {
      if (thing.startsWith('label ')) labels.set(thing, operation.state);
      else if (worst.get(thing) !== 'queued') worst.set(thing, operation.state);
    }
  }
  for (const conflict of conflicts) for (const thing of disputedBy(conflict)) worst.set(thing, 'conflict');
  const counts = { conflict: status.conflicts, queued: status.queued, sent: status.sent };
  const wanted = {
    'the page Sync': (thing) => worst.get(thing) ?? 'confirmed',
    'the grid': (thing) => worst.get(thing) ?? '',
    'the concepts': (thing) => worst.get(thing) ?? '',
    'the models': (thing) => worst.get(thing) ?? '',
    'the versions': (thing) => worst.get(thing) ?? (underway.includes(thing) ? '' : 'confirmed'),
    'a picture': (thing) => labels.get(thing) ?? '',
    History: (thing) => (verdicts.includes(thing) ? 'conflict' : (steps.get(thing) ?? 'confirmed')),
  };
  const summary = Object.keys(counts).find((one) => counts[one]) ?? 'confirmed';
  return [
    ...late.found.flatMap(([view, thing, mark]) => {
      const want = wanted[view](thing);
      return mark === want
        ? []
        : [`${view}: ${thing} is ${mark || 'without a mark'}, and its host's lists say ${want || 'nothing'}`];
    }),
    ...(late.summary === summary ? [] : [`the summary is ${late.summary}, and the status ${JSON.stringify(counts)}`]),
  ];
}
