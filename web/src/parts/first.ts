/** Gives the focus to the part of what opens that says it is first; without one, to the first that can have it. */
export function focusFirst(content: HTMLElement | null, event: Event): void {
  const marked = content?.querySelector<HTMLElement>('[data-first]');
  if (!marked) return;
  event.preventDefault();
  marked.focus();
}
