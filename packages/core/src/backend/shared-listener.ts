type Listener = (...args: never[]) => void;

interface Emitter {
  on(event: string | symbol, listener: Listener): unknown;
  removeListener(event: string | symbol, listener: Listener): unknown;
}

/** The one listener of a client for an event, and what it calls. */
interface SharedListener {
  readonly onEvent: Listener;
  readonly listeners: Map<object, Listener>;
}

const shared = new WeakMap<object, Map<string | symbol, SharedListener>>();

/**
 * Listens to an event of a client that many backends share. All of them together are one listener of the client, which warns of a leak
 * from the eleventh on. Returns a function that ends the listening.
 *
 * @param client - what emits the event: its types differ from one version of a library to the next
 */
export function shareListener(client: object, event: string | symbol, listener: Listener): () => void {
  const emitter = client as Emitter;
  let events = shared.get(client);
  if (events === undefined) shared.set(client, (events = new Map()));
  const { onEvent, listeners } = events.get(event) ?? newListener();
  if (listeners.size === 0) {
    events.set(event, { onEvent, listeners });
    emitter.on(event, onEvent);
  }
  // Each registration ends alone, also where two have one listener.
  const registration = {};
  listeners.set(registration, listener);
  return () => {
    if (listeners.delete(registration) && listeners.size === 0) emitter.removeListener(event, onEvent);
  };
}

function newListener(): SharedListener {
  const listeners = new Map<object, Listener>();
  const onEvent: Listener = (...args) => {
    for (const listener of [...listeners.values()]) listener(...args);
  };
  return { onEvent, listeners };
}
