/** Gives the focus to the first part of the opened content, or else to the first element that can have it. */
export function focusFirst(content: HTMLElement | null, event: Event): void {
  const marked = content?.querySelector<HTMLElement>('[data-first]');
  if (!marked) return;
  event.preventDefault();
  marked.focus();
}
