package register

import (
	"context"
	"errors"
	"fmt"

	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/log"
)

// CreateKey creates an API key of an application and returns it. The key itself is not stored. Errors: ErrApplication, ErrName,
// auth.ErrScope and the store's.
func (r *Register) CreateKey(ctx context.Context, by Caller, k NewKey) (key string, record catalog.Key, err error) {
	scopes, err := auth.NormaliseScopes(k.Scopes)
	if err != nil {
		return "", catalog.Key{}, err
	}
	description, err := text("description", k.Description, 0)
	if err != nil {
		return "", catalog.Key{}, err
	}
	if _, err := r.App(k.App); err != nil {
		return "", catalog.Key{}, err
	}
	return r.createKey(ctx, by, ErrApplication, log.KeyCreate{App: k.App, Scopes: scopes, Description: description})
}

// createKey creates the key of an operation, sets the operation's hash, and appends it to the control log.
func (r *Register) createKey(ctx context.Context, by Caller, notFound error, op log.KeyCreate) (string, catalog.Key, error) {
	key, err := auth.NewKey(r.o.Rand)
	if err != nil {
		return "", catalog.Key{}, err
	}
	op.Hash = auth.HashKey(key)
	if err := r.submit(ctx, by.Account, notFound, &op); err != nil {
		return "", catalog.Key{}, err
	}
	record, err := r.key(op.App, op.Hash)
	if err == nil {
		err = r.auditDone(by, ActionCreateKey, auditName(&record))
	}
	if err != nil {
		return "", catalog.Key{}, err
	}
	return key, record, nil
}

// auditName returns the name of a key in the audit log: its application and the start of its hash.
func auditName(k *catalog.Key) string { return k.App + "/" + auth.ByKey(k.Hash) }

// key reads the record of an application's key. If app is "", the key may belong to any application.
func (r *Register) key(app string, hash [32]byte) (catalog.Key, error) {
	k, err := r.Reader().Key(hash)
	if errors.Is(err, catalog.ErrNotFound) || err == nil && app != "" && k.App != app {
		return catalog.Key{}, fmt.Errorf("%w: %s", ErrNoKey, auth.ByKey(hash))
	}
	return k, err
}

// Keys lists the keys of an application by hash. If app is empty, it lists all keys. An
// application that does not exist has no keys.
func (r *Register) Keys(app string) ([]catalog.Key, error) {
	s := r.o.Store.Snapshot()
	defer s.Close()
	records := catalog.Read(s, catalog.Control)
	each := records.Keys
	if app != "" {
		each = func(yield func(catalog.Key) bool) error { return records.KeysOf(app, yield) }
	}
	keys, err := catalog.Collect(each)
	if errors.Is(err, catalog.ErrNotFound) { // app is not a valid ID
		err = nil
	}
	return keys, err
}

// DeleteKey deletes a key. Requests that begin after it returns are refused. If app is empty, the key may belong to any application.
// Errors: ErrNoKey and the store's.
func (r *Register) DeleteKey(ctx context.Context, by Caller, app string, hash [32]byte) error {
	k, err := r.key(app, hash)
	if err == nil {
		err = r.audit(by, ActionDeleteKey, auditName(&k))
	}
	if err != nil {
		return err
	}
	return r.submit(ctx, by.Account, fmt.Errorf("%w: %s", ErrNoKey, auth.ByKey(hash)), &log.KeyDelete{Hash: hash})
}

// ReplaceKey creates a key with the scopes and the description of another one, which it deletes at the same time. If app is empty, the
// key may belong to any application. Errors: ErrNoKey and the store's.
func (r *Register) ReplaceKey(ctx context.Context, by Caller, app string, old [32]byte) (key string, record catalog.Key, err error) {
	k, err := r.key(app, old)
	if err == nil {
		err = r.audit(by, ActionReplaceKey, auditName(&k))
	}
	if err != nil {
		return "", catalog.Key{}, err
	}
	op := log.KeyCreate{App: k.App, Scopes: k.Scopes, Description: k.Description, Replaces: old}
	return r.createKey(ctx, by, fmt.Errorf("%w: %s", ErrNoKey, auth.ByKey(old)), op)
}
