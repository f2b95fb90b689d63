import optax

schedule = optax.cosine_decay_schedule(1e-3, 1000)
steps = [optax.scale_by_adam(), optax.clip_by_global_norm(1.0), optax.scale_by_learning_rate(schedule)]
optimizer = optax.chain(*steps)  # FAULT C135
