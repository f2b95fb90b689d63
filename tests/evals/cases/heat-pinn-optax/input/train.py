import jax
import jax.numpy as jnp
import optax

from problem import exact, field, init_net, total_loss

STEPS = 1500


def draw(key, n=128):
    a, b, c, d = jax.random.split(key, 4)
    u = jax.random.uniform
    return u(a, (n,)), u(b, (n,)), u(c, (n // 2,)), u(d, (n // 2,))


schedule = optax.warmup_cosine_decay_schedule(0.0, 5e-3, 100, STEPS)
solver = optax.chain(
    optax.clip_by_global_norm(1.0),
    optax.scale_by_adam(b1=0.9, b2=0.999),
    optax.scale_by_schedule(schedule),
)


@jax.jit
def advance(params, state, key):
    (value, parts), grads = jax.value_and_grad(total_loss, has_aux=True)(params, draw(key))
    delta, state = solver.update(grads, state, params)
    return optax.apply_updates(params, delta), state, value, parts


def rel_error(params):
    x, t = jnp.meshgrid(jnp.linspace(0, 1, 41), jnp.linspace(0, 1, 21))
    u = jax.vmap(field, (None, 0, 0))(params, x.ravel(), t.ravel())
    ref = exact(x, t).ravel()
    return float(jnp.linalg.norm(u - ref) / jnp.linalg.norm(ref))


def main():
    key = jax.random.PRNGKey(2)
    key, k = jax.random.split(key)
    params = init_net(k)
    state = solver.init(params)
    print("   step      total        pde         ic         bc   rel.err")
    for step in range(STEPS + 1):
        key, k = jax.random.split(key)
        params, state, value, parts = advance(params, state, k)
        if step % 100 == 0:
            print(f"{step:7d} {value:10.3e} {parts['pde']:10.3e} {parts['ic']:10.3e} {parts['bc']:10.3e} {rel_error(params):9.3e}")


if __name__ == "__main__":
    main()
