import { x } from './nowhere';
export async function execute() {
  return x;
}
