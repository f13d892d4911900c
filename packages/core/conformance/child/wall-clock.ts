const RealDate = Date;
let offset: number | undefined;

/** Sets the wall clock of this process to `offsetMs` ahead of the machine's. */
export function setWallClock(offsetMs: number): void {
  if (offset === undefined) globalThis.Date = dateWithOffset();
  offset = offsetMs;
}

function dateWithOffset(): DateConstructor {
  const now = (): number => RealDate.now() + (offset ?? 0);
  return new Proxy(RealDate, {
    construct: (target, args: unknown[], newTarget) =>
      Reflect.construct(target, args.length === 0 ? [now()] : args, newTarget) as object,
    apply: () => new RealDate(now()).toString(),
    get: (target, key, receiver) => (key === 'now' ? now : (Reflect.get(target, key, receiver) as unknown)),
  });
}
