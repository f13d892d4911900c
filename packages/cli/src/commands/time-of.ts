/** The text of an entry's time, which may be any number: the writer's clock may have been wrong. */
export function timeOf(at: number): string {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? 'an unknown time' : date.toISOString();
}
