interface Labelled {
  readonly label?: string | undefined;
}

/** Who holds a resource, and who waits for it. */
interface Users {
  readonly holds: readonly Labelled[];
  readonly waiters: readonly Labelled[];
}

/** For the timeline. */
export function usersInWords({ holds, waiters }: Users): string {
  return `is held by ${namesOf(holds)}, waited for by ${namesOf(waiters)}`;
}

/** What is left of a resource, of those whose labels are meant. */
export function leftInWords(
  name: string,
  { holds, waiters }: Users,
  isMeant: (label: string) => boolean,
): string[] {
  const meant = ({ label = '' }: Labelled): boolean => isMeant(label);
  return [
    ...holds.filter(meant).map(({ label }) => `the hold of ${name} by ${label}`),
    ...waiters.filter(meant).map(({ label }) => `the wait for ${name} of ${label}`),
  ];
}

function namesOf(some: readonly Labelled[]): string {
  return some.map(({ label }) => label).join(', ') || 'nobody';
}
