package fold

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
)

// ErrPrefix is returned for a prefix without a node in the digest tree.
var ErrPrefix = errors.New("invalid node of the digest tree")

// TreeDepth is the number of levels of a digest tree below its root.
const TreeDepth = 4

// Tree is a 16-ary tree of digests over the keys of an application's state. Two replicas find their differences with it. A key is below
// each node whose prefix begins the SHA-256 of the key.
//
//	""      one node: all
//	"0"…"f" 16 children
//	…
//	"0000"  65,536 leaves: about 80 keys each for a million inputs
//
// A tree takes 3 MB for any state. It does not change and may be used concurrently.
type Tree struct {
	levels [TreeDepth + 1][]Node
}

// Node is a part of a state: the number of its keys, and the SHA-256 of the keys and their values. It is zero if there are no keys.
type Node struct {
	Keys   uint64
	Digest [32]byte
}

// DigestTree reads an application's whole state and returns its tree. Equal logs give equal trees.
func DigestTree(r kv.Reader, app catalog.AppID) (*Tree, error) {
	t := &Tree{}
	for level, n := 0, 1; level <= TreeDepth; level, n = level+1, n*16 {
		t.levels[level] = make([]Node, n)
	}
	leaves := t.levels[TreeDepth]
	s := NewSummer()
	err := catalog.Read(r, app).StateTables(func(key, value []byte) bool {
		leaf := &leaves[leafOf(key)]
		s.h.Reset()
		s.h.Write(leaf.Digest[:])
		s.Add(key, value)
		leaf.Keys++
		leaf.Digest = s.Sum()
		return true
	})
	for level := TreeDepth - 1; level >= 0; level-- {
		for i := range t.levels[level] {
			t.levels[level][i] = join(t.levels[level+1][16*i:][:16])
		}
	}
	return t, err
}

// leafOf returns the number of a key's leaf.
func leafOf(key []byte) int {
	h := sha256.Sum256(key)
	return int(h[0])<<8 | int(h[1])
}

// join returns the node above sixteen nodes.
func join(children []Node) (n Node) {
	h := sha256.New()
	for i := range children {
		n.Keys += children[i].Keys
		h.Write(children[i].Digest[:])
	}
	if n.Keys > 0 {
		h.Sum(n.Digest[:0])
	}
	return n
}

// at returns the level of a node and its index in the level. prefix has the node's lower-case hexadecimal digits from the root.
func at(prefix string) (level, i int, err error) {
	if len(prefix) > TreeDepth || strings.Trim(prefix, "0123456789abcdef") != "" {
		return 0, 0, fmt.Errorf("%q: %w", prefix, ErrPrefix)
	}
	for _, c := range []byte(prefix) {
		i = 16*i + strings.IndexByte("0123456789abcdef", c)
	}
	return len(prefix), i, nil
}

// Node returns the node with a prefix; the root's prefix is empty. It returns ErrPrefix for an invalid prefix.
func (t *Tree) Node(prefix string) (Node, error) {
	level, i, err := at(prefix)
	if err != nil {
		return Node{}, err
	}
	return t.levels[level][i], nil
}

// Children returns the sixteen nodes below a node, none below a leaf. The caller must not change them. It returns ErrPrefix for an invalid
// prefix.
func (t *Tree) Children(prefix string) ([]Node, error) {
	level, i, err := at(prefix)
	if err != nil || level == TreeDepth {
		return nil, err
	}
	return t.levels[level+1][16*i:][:16:16], nil
}

// KeysBelow yields the keys below a node, without the application's id, and their values, in the order of StateTables. Both are borrowed.
// It reads the whole state. It returns ErrPrefix for an invalid prefix, and the store's errors.
func KeysBelow(r kv.Reader, app catalog.AppID, prefix string, yield func(key, value []byte) bool) error {
	if _, _, err := at(prefix); err != nil {
		return err
	}
	return catalog.Read(r, app).StateTables(func(key, value []byte) bool {
		h := sha256.Sum256(key)
		if !strings.HasPrefix(hex.EncodeToString(h[:TreeDepth/2]), prefix) {
			return true
		}
		return yield(key, value)
	})
}
