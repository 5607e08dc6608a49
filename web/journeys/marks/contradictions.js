// The contradictions that a host must list: values of a register whose writers had not seen each other's. They follow from the order of the
// operations at the host, and from the values that each writer's host showed at the time of the write.

/** The registers of a program and the writes to them. */
export class Registers {
  #writes = new Map(); // by the name of an operation: { register, value, seen }, { creates } or { deletes }
  #unclear = new Set(); // registers with a write of which it is unknown what its writer saw

  /** Adds the operation that creates an input, with the values that it gives. */
  create(name, input, values) {
    this.#writes.set(name, { creates: input, values });
  }

  /** Adds a write of a value. order: the operations that its writer's host had folded, in their order; undefined if that is unknown. */
  write(name, register, value, order) {
    if (!order) this.#unclear.add(register);
    else
      this.#writes.set(name, { register, value, seen: (this.#replay(order).get(register) ?? []).map((v) => v.name) });
  }

  /** Adds a write whose name is unknown. */
  lose(register) {
    this.#unclear.add(register);
  }

  delete(name, input) {
    this.#writes.set(name, { deletes: input });
  }

  /** Returns the contradictions of a host that has folded operations in an order: by register, the values as sorted JSON. */
  expected(order) {
    const found = new Map();
    for (const [register, values] of this.#replay(order)) {
      const all = values.map((v) => JSON.stringify(v.value) ?? 'null').sort();
      if (new Set(all).size > 1 && !this.#unclear.has(register)) found.set(register, all.join());
    }
    return found;
  }

  isUnclear = (register) => this.#unclear.has(register);

  /** Returns the values of each register: those that contradict each other, or the one that serves. */
  #replay(order) {
    const state = new Map();
    const live = new Set();
    for (const operation of order) {
      const { name, at, writer } = operation;
      const x = this.#writes.get(name);
      if (x?.creates) {
        live.add(x.creates);
        for (const [register, value] of x.values) state.set(register, [{ name, at, writer, value }]);
      } else if (x?.deletes) {
        live.delete(x.deletes);
        for (const register of [...state.keys()]) if (register.split(' ')[1] === x.deletes) state.delete(register);
      } else if (x) {
        const [what, input] = x.register.split(' ');
        if (what !== 'name' && !live.has(input)) continue; // its input was deleted
        state.set(x.register, meet(state.get(x.register) ?? [], { name, at, writer, value: x.value }, x.seen));
      }
    }
    return state;
  }
}

/** Returns the values of a register after a write. If all are equal, only the one that serves remains. */
function meet(values, set, seen) {
  const left = values.filter((v) => v.writer !== set.writer && !seen.includes(v.name));
  const all = [...left, set];
  const isEqual = all.every((v) => JSON.stringify(v.value) === JSON.stringify(set.value));
  if (!isEqual) return all;
  // The write serves unless a value of an earlier operation in the log has a later clock.
  const [latest] = [...values, set].sort((a, b) =>
    a.at === b.at ? (a.writer < b.writer ? 1 : -1) : a.at < b.at ? 1 : -1,
  );
  return [latest];
}

/** Returns the contradictions in a list of a host, like `expected`. Those of deletions are left out. */
export function listedContradictions(conflicts, prefix) {
  const found = new Map();
  for (const { id, verdict, field, input_id, concept_id, path, values } of conflicts) {
    if (verdict !== 'contradiction' || field === 'deletion' || !(input_id ?? concept_id)?.startsWith(prefix)) continue;
    const register =
      { label: `label ${input_id} ${concept_id}`, name: `name ${concept_id}` }[field] ?? `metadata ${input_id} ${path}`;
    const all = values.map((v) => JSON.stringify(v.value) ?? 'null').sort();
    found.set(register, { id, values: all.join(), all: values });
  }
  return found;
}
