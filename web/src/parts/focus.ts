/** Focuses the element with `data-first` in opened content. Without one, the dialog library focuses the first focusable element. */
export function focusFirst(content: HTMLElement | null, event: Event): void {
  const marked = content?.querySelector<HTMLElement>('[data-first]');
  if (!marked) return;
  event.preventDefault();
  marked.focus();
}
