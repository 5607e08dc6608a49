// The lists of operations of a host.

/** Returns the pending operations and the conflicts of a host. */
export async function listAll(call) {
  const list = async (path, name) => {
    const all = [];
    for (let page = 1; ; page++) {
      const items = (await call('GET', `/v2/sync/${path}?page=${page}&per_page=1000`))[name];
      all.push(...items);
      if (items.length < 1000) return all;
    }
  };
  return { operations: await list('outbox', 'operations'), conflicts: await list('conflicts', 'conflicts') };
}
