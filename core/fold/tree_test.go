package fold_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
)

// tree returns the digest tree of a world.
func tree(w *world) *fold.Tree {
	w.Helper()
	t, err := fold.DigestTree(w.store, w.app)
	if err != nil {
		w.Fatal(err)
	}
	return t
}

// differ walks two trees from the top. It returns the leaves that differ and the number of nodes that it compared.
func differ(t *testing.T, a, b *fold.Tree, prefix string) (leaves []string, nodes int) {
	t.Helper()
	x, err := a.Children(prefix)
	if err != nil {
		t.Fatal(err)
	}
	y, err := b.Children(prefix)
	if err != nil {
		t.Fatal(err)
	}
	if x == nil {
		return []string{prefix}, 0
	}
	nodes = len(x)
	for i := range x {
		if x[i] != y[i] {
			more, n := differ(t, a, b, prefix+fmt.Sprintf("%x", i))
			leaves, nodes = append(leaves, more...), nodes+n
		}
	}
	return leaves, nodes
}

// TestTree compares the tree with the keys below it, and finds the one key that differs.
func TestTree(t *testing.T) {
	w, v := newWorld(t), newWorld(t)
	for i := range 500 {
		body := create(fmt.Sprint("input", i))
		w.expect(fold.OK, 1, log.HLC(i+1), body)
		v.expect(fold.OK, 1, log.HLC(i+1), body)
	}
	a, b := tree(w), tree(v)
	if leaves, _ := differ(t, a, b, ""); leaves != nil {
		t.Fatalf("equal states differ in %v", leaves)
	}
	root, err := a.Node("")
	if err != nil || root.Keys < 1500 {
		t.Fatalf("%d keys at the root, %v", root.Keys, err)
	}
	keys := uint64(0)
	for i := range 16 {
		prefix := fmt.Sprintf("%x", i)
		n, err := a.Node(prefix)
		if err != nil {
			t.Fatal(err)
		}
		below := uint64(0)
		err = fold.KeysBelow(w.store, w.app, prefix, func(key, _ []byte) bool {
			h := sha256.Sum256(key)
			if !strings.HasPrefix(hex.EncodeToString(h[:]), prefix) {
				t.Fatalf("key %x lies below %s", key, prefix)
			}
			below++
			return true
		})
		if err != nil || below != n.Keys {
			t.Errorf("%d keys below %s, %v, want %d", below, prefix, err, n.Keys)
		}
		keys += below
	}
	if keys != root.Keys {
		t.Errorf("%d keys below the root's children, want %d", keys, root.Keys)
	}

	spoil(v, 'i')
	b = tree(v)
	leaves, nodes := differ(t, a, b, "")
	if len(leaves) != 1 || nodes != 16*fold.TreeDepth {
		t.Fatalf("one key differs: leaves %v, after %d nodes", leaves, nodes)
	}
	different := 0
	values := map[string][]byte{}
	for _, side := range []*world{w, v} {
		err := fold.KeysBelow(side.store, side.app, leaves[0], func(key, value []byte) bool {
			if other, ok := values[string(key)]; ok && !bytes.Equal(other, value) {
				different++
			}
			values[string(key)] = bytes.Clone(value)
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if different != 1 {
		t.Errorf("%d keys of the leaf differ, want 1", different)
	}
}

// spoil changes the value of one key of a table.
func spoil(w *world, table byte) {
	w.Helper()
	lo := append([]byte{'a'}, w.app[:]...)
	lo = append(lo, table)
	var b kv.Batch
	err := w.store.Scan(lo, append(lo, 0xff), func(key, value []byte) bool {
		value = bytes.Clone(value)
		value[len(value)-1] ^= 1
		b.Put(key, value)
		return false
	})
	if err == nil {
		err = w.store.Apply(&b)
	}
	if err != nil || b.Len() == 0 {
		w.Fatalf("nothing was changed: %v", err)
	}
}

// TestTreePrefix: invalid prefixes are rejected.
func TestTreePrefix(t *testing.T) {
	w := newWorld(t)
	a := tree(w)
	if n, err := a.Node("ffff"); err != nil || n != (fold.Node{}) {
		t.Errorf("a leaf of the empty state is %+v, %v", n, err)
	}
	for _, prefix := range []string{"g", "A", "00000", "0 ", "\x00"} {
		_, err := a.Node(prefix)
		_, also := a.Children(prefix)
		if !errors.Is(err, fold.ErrPrefix) || !errors.Is(also, fold.ErrPrefix) {
			t.Errorf("%q: %v, %v", prefix, err, also)
		}
		if err := fold.KeysBelow(w.store, w.app, prefix, func(_, _ []byte) bool { return true }); !errors.Is(err, fold.ErrPrefix) {
			t.Errorf("%q: %v", prefix, err)
		}
	}
}
