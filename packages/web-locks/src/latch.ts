/** A promise that somebody else resolves. */
export interface Latch {
  readonly opened: Promise<void>;
  open(): void;
}

export function makeLatch(): Latch {
  let open!: () => void;
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open };
}
