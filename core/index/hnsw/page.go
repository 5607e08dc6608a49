package hnsw

// pageSlots is how many slots share a page.
const pageSlots = 32

func pageOf(slot uint32) int { return int(slot / pageSlots) }
