/** One thing for each other, made when it is asked for first, and kept for as long as that is. */
export function memoByKey<K extends WeakKey, V>(make: (of: K) => V): (of: K) => V {
  const all = new WeakMap<K, V>();
  return (of) => {
    let one = all.get(of);
    if (one === undefined) {
      one = make(of);
      all.set(of, one);
    }
    return one;
  };
}
