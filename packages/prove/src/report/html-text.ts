const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

/** Text that others wrote, for the inside of an element or of an attribute. */
export function text(given: string): string {
  return given.replaceAll(/[&<>"]/g, (char) => ENTITIES[char] as string);
}
