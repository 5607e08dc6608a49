package memkv

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestTree changes trees at random, in runs and ranges, with keys and values of many lengths, and copies them in between. Each tree equals
// a map and is well packed.
func TestTree(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			type known struct {
				tree *tree
				want map[string]string
			}
			all := []known{{newTree(), map[string]string{}}}
			for range 60 {
				k := all[rng.IntN(len(all))]
				switch rng.IntN(5) {
				case 0:
					if len(all) < 5 {
						all = append(all, known{k.tree.copy(), maps.Clone(k.want)})
					}
				case 1:
					lo, hi := randomKey(rng), randomKey(rng)
					k.tree.deleteRange(lo, hi, func(key []byte, v value) {
						if !v.is(k.want[string(key)]) {
							t.Fatalf("deleteRange yields %q with %q", key, v.near)
						}
						delete(k.want, string(key))
					})
				case 2:
					for _, key := range slices.Sorted(maps.Keys(k.want)) {
						if rng.IntN(3) == 0 {
							continue
						}
						if old, was := k.tree.delete([]byte(key)); !was || old.size() != int64(len(k.want[key])) {
							t.Fatalf("delete of %q: %v of %d bytes", key, was, old.size())
						}
						delete(k.want, key)
					}
				default:
					run, step := randomKey(rng), rng.IntN(3)-1
					for i := range rng.IntN(300) {
						key := randomKey(rng)
						if step != 0 {
							key = binary.BigEndian.AppendUint16(slices.Clip(run), uint16(1000+step*i))
						}
						data := bytes.Repeat([]byte{byte(i)}, rng.IntN(80))
						if rng.IntN(200) == 0 {
							data = bytes.Repeat([]byte{byte(i)}, 1<<uint(10+rng.IntN(8)))
						}
						v := value{near: data}
						if len(data) > 60 {
							v = value{far: far{place: place(i), n: uint32(len(data)), crc: crc(data)}, away: true}
						}
						before, exists := k.want[string(key)]
						if old, was := k.tree.put(key, v); was != exists || old.size() != int64(len(before)) {
							t.Fatalf("put of %q: %v of %d bytes, want %v of %d", key, was, old.size(), exists, len(before))
						}
						k.want[string(key)] = string(data)
					}
				}
				for _, k := range all {
					checkTree(t, rng, k.tree, k.want)
				}
			}
		})
	}
}

// is reports whether the value equals data. For a value in the journal it compares the length and the checksum.
func (v value) is(data string) bool {
	if v.away {
		return v.far.n == uint32(len(data)) && v.far.crc == crc([]byte(data))
	}
	return string(v.near) == data
}

// randomKey returns one of several thousand keys that share prefixes, some of them long.
func randomKey(rng *rand.Rand) []byte {
	key := []byte([]string{"", "a", "an application's inputs/", "an application's log/", "b"}[rng.IntN(5)])
	key = append(key, byte(rng.IntN(7)), byte(rng.IntN(256)))
	if rng.IntN(20) == 0 {
		key = append(key, bytes.Repeat([]byte{'l'}, rng.IntN(400))...)
	}
	return key
}

func checkTree(t *testing.T, rng *rand.Rand, tr *tree, want map[string]string) {
	t.Helper()
	keys := slices.Sorted(maps.Keys(want))
	if tr.n != len(keys) {
		t.Fatalf("%d pairs, want %d", tr.n, len(keys))
	}
	lo := randomKey(rng)
	from, found := slices.BinarySearch(keys, string(lo))
	if v, ok := tr.get(lo); ok != found || ok && !v.is(want[string(lo)]) {
		t.Fatalf("get of %q: %q %v, want %v", lo, v.near, ok, found)
	}
	i := from
	tr.ascend(lo, func(key []byte, v value) bool {
		if i >= len(keys) || string(key) != keys[i] || !v.is(want[keys[i]]) {
			t.Fatalf("ascend from %q: at %d is %q with %q", lo, i, key, v.near)
		}
		i++
		return true
	})
	if i != len(keys) {
		t.Fatalf("ascend from %q ends at %d of %d", lo, i, len(keys))
	}
	for _, hi := range [][]byte{lo, nil} {
		i := from
		if hi == nil {
			i = len(keys)
		}
		tr.descend(hi, func(key []byte, v value) bool {
			if i--; i < 0 || string(key) != keys[i] || !v.is(want[keys[i]]) {
				t.Fatalf("descend from %q: at %d is %q with %q", hi, i, key, v.near)
			}
			return true
		})
		if i != 0 {
			t.Fatalf("descend from %q ends before %d", hi, i)
		}
	}
	var low []byte
	n := 0
	tr.leaves.Scan(func(r ref) bool {
		l := r.leaf
		switch {
		case n == 0 && len(r.low) > 0, n > 0 && bytes.Compare(r.low, low) <= 0:
			t.Fatalf("leaf %d begins at %q, behind %q", n, r.low, low)
		case n > 0 && len(l.starts) == 0:
			t.Fatalf("leaf %d is empty", n)
		case len(l.starts) > 1 && len(l.data) > leafBytes:
			t.Fatalf("leaf %d has %d pairs of %d bytes", n, len(l.starts), len(l.data))
		}
		low = r.low
		n++
		return true
	})
}

// TestTreeIsPacked checks how full the leaves are, in whatever order keys are added and deleted.
func TestTreeIsPacked(t *testing.T) {
	const pairs = 20_000
	key := func(i int) []byte {
		return binary.BigEndian.AppendUint64([]byte("an application's inputs/"), uint64(i))
	}
	order := rand.New(rand.NewPCG(1, 1)).Perm(pairs)
	for _, tt := range []struct {
		name  string
		grow  func(tr *tree)
		least float64 // minimum average fill of leaves, as a share of leafBytes
	}{
		{"in order", func(tr *tree) {
			for i := range pairs {
				tr.put(key(i), value{near: make([]byte, 30)})
			}
		}, 0.95},
		{"two ends by turns", func(tr *tree) {
			for i := range pairs / 2 {
				tr.put(key(i), value{near: make([]byte, 30)})
				tr.put(key(pairs+i), value{near: make([]byte, 30)})
			}
		}, 0.95},
		{"at random", func(tr *tree) {
			for _, i := range order {
				tr.put(key(i), value{near: make([]byte, 30)})
			}
		}, 0.6},
		{"most are deleted again", func(tr *tree) {
			for i := range pairs {
				tr.put(key(i), value{near: make([]byte, 30)})
			}
			for _, i := range order[pairs/20:] {
				tr.delete(key(i))
			}
		}, 0.25},
	} {
		tr := newTree()
		tt.grow(tr)
		bytes := 0
		tr.leaves.Scan(func(r ref) bool {
			bytes += len(r.leaf.data)
			return true
		})
		if share := float64(bytes) / float64(leafBytes*tr.leaves.Len()); share < tt.least {
			t.Errorf("%s: %d leaves are %.0f %% full, want %.0f", tt.name, tr.leaves.Len(), 100*share, 100*tt.least)
		}
	}
}
