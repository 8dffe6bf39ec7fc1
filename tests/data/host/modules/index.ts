import { counter } from './counter';
import { also } from './also.js';
import config from './config.json';
enum Colour { Red = 'red' }
namespace Space { export const x = 3; }
const later = await Promise.resolve('awaited');
export async function execute() {
  const lazy = await import('./counter');
  counter.n++;
  return { content: [{ type: 'text', text: [counter.n, also(), lazy.counter === counter, config.name, Colour.Red, Space.x, later].join(' ') }] };
}
