import { createHash } from 'node:crypto';
import { LUA_GLOBALS, LUA_REGISTRY, LuaType, loadLua } from './lua-module.ts';
import { LuaState } from './lua-state.ts';
import { formatDouble } from './numbers.ts';
import { SimulatedRedisError, type SimulatedReply } from './reply.ts';

/** Executes one command that a script calls. */
export type CallFromScript = (command: readonly string[]) => SimulatedReply;

/**
 * What Redis 7 puts around scripts: errors are tables with the place where they arose, and scripts neither create globals nor
 * read absent ones. Nothing that gives another answer in another run is left: no clock, no random numbers, no files.
 */
const PRELUDE = `
local getinfo = debug.getinfo
redis = { call = redis_call, pcall = redis_pcall }
redis_call, redis_pcall = nil, nil
KEYS, ARGV = {}, {}
for _, name in ipairs({ 'io', 'os', 'debug', 'package', 'require', 'module', 'dofile', 'loadfile', 'print', 'newproxy' }) do
  _G[name] = nil
end
math.random, math.randomseed = nil, nil
setmetatable(_G, {
  __index = function(_, name) error('Script attempted to access nonexistent global variable \\'' .. tostring(name) .. '\\'', 2) end,
  __newindex = function(_, name) error('Attempt to modify a readonly table script', 2) end,
})
return function(failure)
  local place = getinfo(2, 'Sl')
  if place and place.what == 'C' then place = getinfo(3, 'Sl') end
  if type(failure) ~= 'table' then failure = { err = 'ERR ' .. tostring(failure) } end
  if place then failure.source, failure.line = place.source, place.currentline end
  return failure
end
`;

/**
 * Runs Lua 5.1 scripts as Redis 7 does. One interpreter serves any number of simulated servers: scripts leave nothing behind
 * in it, and each is compiled once.
 */
export class LuaScripts {
  readonly #state: LuaState;
  readonly #compiled = new Map<string, number>();
  readonly #handler: number;
  #call: CallFromScript | undefined;

  private constructor(state: LuaState) {
    this.#state = state;
    const { module, address } = state;
    module._luaL_openlibs(address);
    this.#register('redis_call', true);
    this.#register('redis_pcall', false);
    this.#load(PRELUDE, '=prelude');
    if (module._lua_pcall(address, 0, 1, 0) !== 0) throw new Error(state.readText(-1));
    this.#handler = module._luaL_ref(address, LUA_REGISTRY);
  }

  static async load(): Promise<LuaScripts> {
    return new LuaScripts(new LuaState(await loadLua()));
  }

  static sha1(source: string): string {
    return createHash('sha1').update(source, 'latin1').digest('hex');
  }

  /** Compiles a script; fails if it is not Lua. */
  compile(sha1: string, source: string): void {
    if (this.#compiled.has(sha1)) return;
    this.#load(source, '@user_script');
    const { module, address } = this.#state;
    this.#compiled.set(sha1, module._luaL_ref(address, LUA_REGISTRY));
  }

  /** Runs a compiled script. Throws the error that it ends with. */
  run(sha1: string, keys: readonly string[], args: readonly string[], call: CallFromScript): SimulatedReply {
    const compiled = this.#compiled.get(sha1);
    if (compiled === undefined)
      throw new SimulatedRedisError('NOSCRIPT No matching script. Please use EVAL.');
    const state = this.#state;
    const { module, address } = state;
    const outer = this.#call;
    this.#call = call;
    try {
      module._lua_rawgeti(address, LUA_REGISTRY, this.#handler);
      state.pushTexts(keys);
      module._lua_setfield(address, LUA_GLOBALS, state.name('KEYS'));
      state.pushTexts(args);
      module._lua_setfield(address, LUA_GLOBALS, state.name('ARGV'));
      module._lua_rawgeti(address, LUA_REGISTRY, compiled);
      if (module._lua_pcall(address, 0, 1, 1) !== 0) throw this.#failure(sha1);
      const reply = state.readReply(-1);
      if (reply instanceof SimulatedRedisError) throw reply;
      return reply;
    } finally {
      module._lua_settop(address, 0);
      this.#call = outer;
    }
  }

  #failure(sha1: string): SimulatedRedisError {
    const state = this.#state;
    const message = state.readField('err') ?? 'ERR unknown error';
    const line = state.readField('line');
    const place = line === undefined ? '' : `, on ${state.readField('source') ?? ''}:${line}.`;
    return new SimulatedRedisError(`${message} script: ${sha1}${place}`);
  }

  #load(source: string, name: string): void {
    const state = this.#state;
    const { module, address } = state;
    const at = state.write(source);
    if (module._luaL_loadbuffer(address, at, source.length, state.name(name)) === 0) return;
    const reason = state.readText(-1);
    state.pop();
    throw new SimulatedRedisError(`ERR Error compiling script (new function): ${reason}`);
  }

  #register(name: string, raises: boolean): void {
    const state = this.#state;
    const { module, address } = state;
    const callback = module.addFunction((caller) => {
      const reply = this.#callFrom(caller);
      state.pushReply(reply);
      // Leaves this function by an exception of the interpreter, which its `pcall` catches.
      if (raises && reply instanceof SimulatedRedisError) return module._lua_error(address);
      return 1;
    }, 'ii');
    module._lua_pushcclosure(address, callback, 0);
    module._lua_setfield(address, LUA_GLOBALS, state.name(name));
  }

  #callFrom(caller: number): SimulatedReply {
    const state = this.#state;
    const { module } = state;
    if (caller !== state.address) throw new Error('scripts run without coroutines');
    const count = module._lua_gettop(caller);
    const command: string[] = [];
    for (let index = 1; index <= count; index++) {
      const type = module._lua_type(caller, index);
      if (type === LuaType.number) command.push(formatDouble(module._lua_tonumber(caller, index)));
      else if (type === LuaType.string) command.push(state.readText(index));
      else {
        return new SimulatedRedisError('ERR Lua redis lib command arguments must be strings or integers');
      }
    }
    if (count === 0 || this.#call === undefined) {
      return new SimulatedRedisError('ERR Please specify at least one argument for this redis.call() call');
    }
    try {
      return this.#call(command);
    } catch (error) {
      if (error instanceof SimulatedRedisError) return error;
      throw error;
    }
  }
}
