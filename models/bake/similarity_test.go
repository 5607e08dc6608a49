package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/models"
)

// TestBounds checks the bounds of similarity of pairs with known similarities.
func TestBounds(t *testing.T) {
	p := pairs{}
	for i := range 100 {
		at := float64(i) / 100
		p.alike, p.unlike = append(p.alike, 0.6+0.3*at), append(p.unlike, 0.3+0.3*at)
		p.views, p.different = append(p.views, 0.8+0.2*at), append(p.different, 0.3005+0.6*at)
	}
	got, err := p.bounds(1000)
	if err != nil {
		t.Fatal(err)
	}
	// 50 of 1,000 pictures have another view. From 0.876 the precision is 31 of 35 pairs, and from 0.877 it is 30.5 of 33.5.
	want := predict.Similarity{Related: 0.6, SameScene: 0.877, Pictures: 1000}
	if got != want {
		t.Errorf("bounds = %+v, want %+v", got, want)
	}
	if _, err := (&pairs{alike: p.unlike, unlike: p.alike, views: p.views}).bounds(1000); err == nil {
		t.Error("labels that no similarity separates have a bound")
	}
	p.different = p.views
	if got, err := p.bounds(1000); err == nil {
		t.Errorf("views that no similarity separates have the bounds %+v", got)
	}
}

// TestStoreSimilarity replaces the bounds in the manifest of the released bundle, and changes nothing else.
func TestStoreSimilarity(t *testing.T) {
	before, err := models.FS.ReadFile(general + "/manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, general, "manifest.json")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, before, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := storeSimilarity(dir, predict.Similarity{Related: 0.123, SameScene: 0.456, Pictures: 789}); err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	old, now := strings.Split(string(before), "\n"), strings.Split(string(after), "\n")
	if len(old) != len(now) {
		t.Fatalf("the manifest has %d lines, had %d", len(now), len(old))
	}
	var changed []string
	for i := range old {
		if old[i] != now[i] {
			changed = append(changed, strings.TrimSpace(now[i]))
		}
	}
	if got := strings.Join(changed, " "); got != `"related": 0.123, "same_scene": 0.456, "pictures": 789` {
		t.Errorf("changed lines: %s", got)
	}
}
