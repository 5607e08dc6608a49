package member

import (
	"context"
	"errors"
	"log/slog"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// logger returns etcd's logger. Its lines go to log. etcd reports each step of its work, and much that passes,
// as information and warnings, which are shown at debug.
func logger(log *slog.Logger, fatal func(error)) *zap.Logger {
	return zap.New(core{log.With("part", "etcd")}, zap.WithFatalHook(ending{fatal}))
}

// core is a zapcore.Core over a slog.Logger.
type core struct{ log *slog.Logger }

// levels are the levels of zap in slog.
var levels = map[zapcore.Level]slog.Level{
	zapcore.DebugLevel: slog.LevelDebug - 4,
	zapcore.InfoLevel:  slog.LevelDebug,
	zapcore.WarnLevel:  slog.LevelDebug,
	zapcore.ErrorLevel: slog.LevelWarn,
}

func level(l zapcore.Level) slog.Level {
	if to, ok := levels[l]; ok {
		return to
	}
	return slog.LevelError
}

// Enabled implements [zapcore.LevelEnabler].
func (c core) Enabled(l zapcore.Level) bool { return c.log.Enabled(context.Background(), level(l)) }

// With implements [zapcore.Core].
func (c core) With(fields []zapcore.Field) zapcore.Core {
	return core{c.log.With(attributes(fields)...)}
}

// Check implements [zapcore.Core].
func (c core) Check(e zapcore.Entry, to *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return to.AddCore(e, c)
	}
	return to
}

// Write implements [zapcore.Core].
func (c core) Write(e zapcore.Entry, fields []zapcore.Field) error {
	c.log.Log(context.Background(), level(e.Level), e.Message, attributes(fields)...)
	return nil
}

// Sync implements [zapcore.Core].
func (c core) Sync() error { return nil }

func attributes(fields []zapcore.Field) []any {
	to := zapcore.NewMapObjectEncoder()
	for _, f := range fields {
		f.AddTo(to)
	}
	all := make([]any, 0, len(fields))
	for _, f := range fields {
		all = append(all, slog.Any(f.Key, to.Fields[f.Key]))
	}
	return all
}

// ending calls fatal before etcd ends the process.
type ending struct{ fatal func(error) }

// OnWrite implements [zapcore.CheckWriteHook].
func (h ending) OnWrite(e *zapcore.CheckedEntry, fields []zapcore.Field) {
	if h.fatal != nil {
		h.fatal(errors.New(e.Message))
	}
	zapcore.WriteThenFatal.OnWrite(e, fields)
}
