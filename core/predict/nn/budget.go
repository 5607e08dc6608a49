package nn

import "fmt"

// budget counts what n will take of the limits on memory and work, before anything is packed.
func (c *compiler) budget(n *node) error {
	for _, p := range n.parts {
		if err := c.budget(p); err != nil {
			return err
		}
	}
	switch n.op {
	case "Conv", "Gemm", "MatMul":
		if n.q == nil && n.in[1].con == nil {
			depth := n.in[0].shape[len(n.in[0].shape)-1]
			return c.spend(n, int64(volume(n.out[0].shape)), int64(depth))
		}
		return c.reserve(n)
	case "MaxPool", "AveragePool":
		w, err := n.window(n.in[0].shape, n.out[0].shape)
		if err != nil {
			return err
		}
		return c.spend(n, int64(volume(n.out[0].shape)), int64(w.kh*w.kw))
	}
	return nil
}

// spend counts results × each multiply-adds.
func (c *compiler) spend(n *node, results, each int64) error {
	if each > 0 && results > c.options.Work/each {
		return fmt.Errorf("%s: %d results of %d multiply-adds: %w", n, results, each, ErrWork)
	}
	if c.plan.work += results * each; c.plan.work > c.options.Work {
		return fmt.Errorf("%s: %d multiply-adds: %w", n, c.plan.work, ErrWork)
	}
	return nil
}

// reserve counts the memory that n's weights will take once packed: output channels in panels of
// 16, depth in groups of four.
func (c *compiler) reserve(n *node) error {
	size, shape := int64(4), n.weightShape()
	if n.q != nil {
		size = 1
	}
	total := int64(volume(shape))
	if total == 0 || len(n.out[0].shape) == 0 {
		return n.errorf("weights of shape %v", shape)
	}
	outs, groups := int64(n.out[0].shape[len(n.out[0].shape)-1]), int64(1)
	if n.op == "Conv" {
		outs, groups = int64(shape[0]), int64(n.attrInt("group", 1))
	}
	if outs == 0 || groups < 1 || outs%groups != 0 {
		return n.errorf("%d outputs in %d groups", outs, groups)
	}
	if err := c.spend(n, int64(volume(n.out[0].shape)), total/outs); err != nil {
		return err
	}
	depth := (total/outs + 3*int64(shape[len(shape)-1]) + 3) * size
	columns := (outs/groups + 15) / 16 * 16 * groups
	if groups > 1 && groups == outs {
		columns = outs // depthwise rows are not padded
	}
	if columns > 1<<40/depth {
		return fmt.Errorf("%s: weights: %w", n, ErrMemory)
	}
	if c.plan.weights += columns * (depth + 12); c.plan.weights > c.options.Memory {
		return fmt.Errorf("%s: %d bytes of weights: %w", n, c.plan.weights, ErrMemory)
	}
	return nil
}
